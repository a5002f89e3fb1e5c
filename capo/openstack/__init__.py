"""OpenStack: session, one module per resource, observer, faults."""
