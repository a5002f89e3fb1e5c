"""API version v1alpha1: OpenStackServer, OpenStackFloatingIPPool, OpenStackClusterIdentity."""
