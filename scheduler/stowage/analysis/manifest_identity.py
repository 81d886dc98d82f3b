"""What the API server adds to every object of a manifest: its namespace and its UID."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

CLUSTER_SCOPED = frozenset(
    {
        "CSIDriver",
        "CSINode",
        "DeviceClass",
        "Namespace",
        "Node",
        "PersistentVolume",
        "PriorityClass",
        "ResourceSlice",
        "StorageClass",
        "VolumeAttachment",
    }
)
"""The kinds without a namespace, of those that scheduling reads."""


def with_identity(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """The object with a namespace and a UID; itself if it has them, or has no name."""
    kind, meta = str(item.get("kind", "")), item.get("metadata")
    if not isinstance(meta, Mapping) or not meta.get("name"):
        return item
    added: dict[str, Any] = {}
    if kind not in CLUSTER_SCOPED and not meta.get("namespace"):
        added["namespace"] = "default"
    if not meta.get("uid"):
        namespace = added.get("namespace") or meta.get("namespace", "")
        # Decoding refuses a namespace or a name that is no text, such as the number 5.
        added["uid"] = "/".join(str(each) for each in (kind, namespace, meta["name"]) if each)
    return {**item, "metadata": {**meta, **added}} if added else item
