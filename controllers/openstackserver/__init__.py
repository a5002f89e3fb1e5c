"""Controller of OpenStackServer."""
