"""Level-triggered engine: feed, store, queue, worker, lease, steps."""
