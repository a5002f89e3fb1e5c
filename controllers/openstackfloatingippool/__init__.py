"""Controller of OpenStackFloatingIPPool: allocates floating IPs to Cluster API's IPAddressClaims."""
