"""OpenStack: session, faults, one module per resource, and the observer whose lists all objects of a project share.

Start at :mod:`capo.openstack.cloud`; what a pass sees is :mod:`capo.openstack.observed`. Nothing here knows Kubernetes.
"""
