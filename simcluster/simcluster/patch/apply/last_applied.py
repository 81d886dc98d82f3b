"""``kubectl apply`` before it was the server's: the annotation in which it kept what it applied.

When ``kubectl apply --server-side`` takes over, it need not fight for what its annotation says it
has set; and the annotation goes on saying what was applied. Follows apimachinery's
``lastappliedmanager.go`` and ``lastappliedupdater.go``.
"""

import json
from typing import Any

from simcluster.patch.apply.field_sets import FieldSet, MissingKeyError, applied_fields, compare
from simcluster.schema import Struct

Json = dict[str, Any]

ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
_MANAGER = "kubectl"
"""The manager of ``kubectl apply --server-side``; who takes another name opts out."""


def _last_applied(obj: Json) -> str:
    return str(((obj.get("metadata") or {}).get("annotations") or {}).get(ANNOTATION) or "")


def claimed_fields(live: Json, struct: Struct, manager: str) -> FieldSet:
    """Fields that are as the annotation says: its manager may change them, whoever owns them."""
    text = _last_applied(live) if manager == _MANAGER else ""
    try:
        applied = json.loads(text) if text else None
        if not isinstance(applied, dict):
            return set()
        changed, removed = compare(applied, live, struct)
        return applied_fields(applied, struct) - changed - removed
    except (ValueError, MissingKeyError):
        return set()


def keep_last_applied(merged: Json, config: Json, manager: str) -> None:
    """Let the annotation of an object that has one tell what was applied now, in place."""
    if manager != _MANAGER or not _last_applied(merged):
        return
    metadata = dict(config.get("metadata") or {})
    others = dict(metadata.pop("annotations", None) or {})
    others.pop(ANNOTATION, None)
    if others:
        metadata["annotations"] = others
    told = {**config, "metadata": metadata}
    text = json.dumps(told, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n"
    annotations = {**merged["metadata"]["annotations"], ANNOTATION: text}
    merged["metadata"] = {**merged["metadata"], "annotations": annotations}
