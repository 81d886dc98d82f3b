"""Tests of `stowage.experiments`."""
