"""Devices for CEL selectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stowage.cel import AttributeValue, Device, Version


def cel_device(device: Mapping[str, Any]) -> Device:
    """Make the input of a selector from a device in the form of the API, with its driver."""
    return Device(
        device["driver"],
        {name: _attribute(value) for name, value in device.get("attributes", {}).items()},
        {name: each["value"] for name, each in device.get("capacity", {}).items()},
        bool(device.get("allowMultipleAllocations")),
    )


def _attribute(value: Mapping[str, Any]) -> AttributeValue:
    if "version" in value:
        return Version(value["version"])
    return next((value[kind] for kind in ("int", "bool", "string") if kind in value), None)
