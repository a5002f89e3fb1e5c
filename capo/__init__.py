"""OpenStack infrastructure provider for Kubernetes Cluster API."""
