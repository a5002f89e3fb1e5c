"""The life of a cluster with a managed topology."""
