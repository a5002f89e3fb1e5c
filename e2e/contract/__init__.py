"""One suite of the provider's requests to OpenStack, run against the simulator and against the real services.

``targets`` has the clouds, ``world`` the tools of a test, ``wire`` records every answer, ``shapes`` and
``recordings`` compare it with the real services' answers. ``differences.md`` lists what cannot run on both.
"""
