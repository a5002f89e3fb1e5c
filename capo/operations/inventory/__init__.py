"""What a cluster, or a project, has in the cloud: read, attributed to its owners, and shown."""
