"""Test environments: in memory, on a real API server with a simulated cloud, and with real OpenStack services.

``in_memory`` and ``provider`` run in virtual time; ``api_server`` is a namespace of a real API server; ``targets`` are
the clouds that a suite can run on; ``objects`` has the builders. ``e2e/README.md`` says which one a new test uses.
"""
