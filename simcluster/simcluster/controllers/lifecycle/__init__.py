"""Cluster-wide controllers: garbage collection, namespaces, budgets, roles."""
