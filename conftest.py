"""Fixtures of the whole project."""

pytest_plugins = ("capo.local.testing",)
