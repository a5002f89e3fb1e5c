"""Controller of OpenStackMachineTemplate: it reports what nodes of a template have before they exist."""
