"""Hypothetical changes: the cluster with some pods added or removed."""
