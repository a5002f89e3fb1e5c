"""Controller of OpenStackMachine."""
