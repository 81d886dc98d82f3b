"""Benchmark of simulations in virtual time."""
