"""Controller of OpenStackClusterIdentity: it reports who uses an identity and whether its Secret works."""
