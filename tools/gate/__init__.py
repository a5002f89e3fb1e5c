"""The gate: all that a change must pass, in parts that run beside one another, with one report."""
