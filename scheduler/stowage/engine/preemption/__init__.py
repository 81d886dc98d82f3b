"""Preemption: evicts the victims and gates the preemptor meanwhile."""
