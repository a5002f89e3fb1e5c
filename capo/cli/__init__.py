"""Commands of ``capo``."""
