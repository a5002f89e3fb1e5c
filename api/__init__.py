"""Models of our API kinds; also importable as a library (capo.api)."""
