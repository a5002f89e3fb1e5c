"""``capo plan``: the real controllers in virtual time, on live reads and recorded writes (ADR 0018).

``kubernetes.py`` and ``cloud.py`` take the places of the API server and of the cloud: reads pass to the live ones, each
once; writes are recorded and change what later reads return. ``rehearsal.py`` runs the controllers until nothing is
left to do.
"""
