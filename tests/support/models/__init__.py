"""Models of the cluster that run beside an engine and check it."""
