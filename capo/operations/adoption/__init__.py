"""``capo adopt``: existing resources become objects. A plan is written for review, then applied.

``lost_cluster.py`` writes the plan of a cluster, ``plan.py`` is the file, ``applying.py`` carries it out. The
objects are written so that the controllers find the resources by the proofs that they have anyway: docs/adr/0016.
"""
