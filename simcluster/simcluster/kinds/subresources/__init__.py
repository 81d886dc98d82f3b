"""Subresources: binding, eviction, scale, ephemeral containers and resize of a pod."""
