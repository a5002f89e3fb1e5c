"""Resources whose owner's object is gone: found with their proofs, and deleted by a reviewed plan (ADR 0017)."""
