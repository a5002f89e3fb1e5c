"""Generates the CustomResourceDefinitions in ``api/crds`` from the models of ``api``.

``schema.py`` turns a model into an OpenAPI schema, ``definitions.py`` puts the versions of a kind together,
``files.py`` keeps the generated files, ``additions.py`` lists what goes beyond the Go provider's schema.
"""
