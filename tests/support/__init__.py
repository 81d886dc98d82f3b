"""Shared parts of tests: builders, engines, fakes, models and scalar twins."""
