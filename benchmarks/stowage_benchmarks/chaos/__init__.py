"""``stowage bench chaos``: replicas, load and faults together, judged by the store's history."""
