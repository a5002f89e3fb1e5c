"""Our API kinds as pydantic models, one folder per version; usable as a library.

>>> from api.v1beta2 import OpenStackMachine >>> machine = OpenStackMachine.model_validate(manifest) >>>
machine.spec.flavor.filter.name

``schema.py`` has the markers that become CRD keywords, ``model.py`` the base of all models, ``meta.py`` the types that
belong to Kubernetes. ``crds/`` is generated from the models (``capo crds --write``) and never edited by hand.
"""
