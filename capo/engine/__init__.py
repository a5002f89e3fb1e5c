"""Level-triggered reconcile engine: watches, store, work queue, workers, leader election, steps."""
