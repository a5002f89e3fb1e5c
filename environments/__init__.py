"""Test environments: in memory, on a real API server with a simulated cloud, and with real OpenStack services."""
