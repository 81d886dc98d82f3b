"""Scheduler extenders over HTTP: filter, prioritize, preempt and bind."""
