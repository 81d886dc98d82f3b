"""Plugins with scripted behaviour."""
