"""Annotations by which a plugin notes on a pod what the pod took of its node, such as its GPUs.

The Binding writes them, so the pod has them from the moment it has a node; after a restart the
plugin reads them from the placed pods.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

RESERVED_PREFIX = "reserved.stowage/"
"""The prefix of these annotations. Of pods, no other annotation is kept."""

ReservedAnnotations: TypeAlias = tuple[tuple[str, str], ...]
"""(key, value) of each, sorted by key."""


def reserved_annotations(annotations: Mapping[str, str]) -> ReservedAnnotations:
    """Those of `annotations` that have the prefix.

    Examples:
        >>> reserved_annotations({"reserved.stowage/gpus": "0", "checksum": "f00"})
        (('reserved.stowage/gpus', '0'),)
    """
    return tuple(
        sorted(each for each in annotations.items() if each[0].startswith(RESERVED_PREFIX))
    )
