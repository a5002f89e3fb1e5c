"""An OpenStack in memory that implements the real HTTP API."""
