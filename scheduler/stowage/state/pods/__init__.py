"""Pods: equivalence classes, counts per node and per topology domain, affinity terms."""
