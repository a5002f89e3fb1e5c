"""API version v1beta2 of the four contract kinds."""
