"""Typed access to kube-apiserver: reads, patches, apply, events, finalizers."""
