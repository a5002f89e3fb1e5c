"""Cluster API's rules as pure functions of Kubernetes objects: owners, pause, endpoint, bootstrap data, addresses.

Nothing here reads or writes anything; rules are cited by their numbers in docs/reference/contract.md.
"""
