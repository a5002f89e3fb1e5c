"""``make demo``: creates, checks, measures and deletes a whole cluster on this machine.

``story`` is the scenario; ``clouds`` defines where it runs; ``inventory`` and ``checks`` prove it, ``counting`` and
``report`` measure it. It sends its requests by openstacksdk as any client would, never through the provider's
own code, so that one mistake cannot hide another.
"""
