"""Checks that docstrings, comments and docs are written in the field's terms: `python -m tools.language`."""
