"""OpenStack: session, faults, one module per resource, and the poller whose lists all objects of a project share.

Start at :mod:`capo.openstack.cloud`; what a reconcile reads of the cloud is :mod:`capo.openstack.cloud_view`. Nothing
here imports Kubernetes.
"""
