"""A kind node and every image of the test from Go modules and Debian packages, where no image registry is reached.

`make e2e-kind NODE=local` runs it. ``programs.py`` builds from the pins in ``tools``, ``node.py`` writes the node's
image, ``providers.py`` what clusterctl fetches, ``host.py`` prepares this machine and puts it back.
"""
