"""Stowage, a Kubernetes scheduler."""
