"""Controller of OpenStackFloatingIPPool: for now it says that pools are not served."""
