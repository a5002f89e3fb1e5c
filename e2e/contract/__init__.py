"""One suite about what the provider asks of OpenStack, run against the simulator and against the real services.

``targets`` says where it runs, ``world`` what a test works with, ``wire`` sees every answer, ``shapes`` and
``recordings`` compare it with what the real services answered. What cannot run on both stands in ``differences.md``.
"""
