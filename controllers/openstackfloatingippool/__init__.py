"""Controller of OpenStackFloatingIPPool: for now it reports that pools are not served."""
