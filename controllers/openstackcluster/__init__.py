"""Controller of OpenStackCluster."""
