"""Readers of the fault table and the alerts."""
