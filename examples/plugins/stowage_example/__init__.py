"""Plugins for Stowage, one a module."""
