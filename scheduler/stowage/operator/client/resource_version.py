"""Resource versions of the API server as numbers."""

from __future__ import annotations


def parse_resource_version(resource_version: str) -> int:
    """The version as a number, to compare it with other versions; 0 if it is not a number."""
    return int(resource_version) if resource_version.isdecimal() else 0
