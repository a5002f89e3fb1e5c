"""``capo explain``: what is the matter with one object, and the next step.

``related.py`` reads the objects around it, ``cloud_state.py`` what the cloud has of them, ``events.py`` what happened;
``catalogue.py`` explains reasons, ``story.py`` decides, ``printing.py`` prints.
"""
