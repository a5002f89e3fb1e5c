"""``make demo``: a whole cluster up and down on this machine, watched, checked and counted.

``story`` tells what happens in which order; ``clouds`` says where; ``inventory`` and ``checks`` prove it,
``counting`` and ``report`` measure it. It asks OpenStack by plain HTTP as any client would, never through the
provider's own code, so that one mistake cannot hide another.
"""
