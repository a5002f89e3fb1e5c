"""A management cluster on one machine."""
