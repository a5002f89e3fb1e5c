"""One suite of the provider's requests to OpenStack, run against the simulator and against the real services.

``environments.targets`` has the clouds, ``environment`` the tools of a test, ``environments.wire`` records every
answer, ``shapes`` and ``recordings`` compare it with the real services' answers. ``differences.md`` lists what cannot
run on both.
"""
