"""Typed access to kube-apiserver: reads, patches, apply, events, finalizers."""

from pathlib import Path
from typing import Final

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod finds its token, the API server's certificates and its namespace."""
