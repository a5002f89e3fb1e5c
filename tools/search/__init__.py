"""Searches for defects with fresh seeds."""
