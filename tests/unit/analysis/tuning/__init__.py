"""Tests of `stowage.analysis.tuning`."""
