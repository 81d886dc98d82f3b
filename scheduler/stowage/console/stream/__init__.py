"""What the console tells open pages while the cluster changes, as server-sent events."""
