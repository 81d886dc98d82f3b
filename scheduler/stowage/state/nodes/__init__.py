"""Nodes as columns: one row per node, one column per thing that plugins read."""
