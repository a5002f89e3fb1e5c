"""Deterministic simulation: the whole manager in one thread, in virtual time, with simulated servers."""
