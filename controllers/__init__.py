"""One folder per kind: scope, steps, status, routes."""
