"""The annotation in which client-side ``kubectl apply`` keeps the applied configuration.

``kubectl apply --server-side`` takes over the fields in the annotation without conflicts, and the
annotation is kept up to date. Follows apimachinery's ``lastappliedmanager.go`` and
``lastappliedupdater.go``.
"""

import json
from typing import Any

from simcluster.patch.apply.field_sets import FieldSet, MissingKeyError, applied_fields, compare
from simcluster.schema import Struct

Json = dict[str, Any]

ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
_MANAGER = "kubectl"
"""The default manager of ``kubectl apply --server-side``; other managers are not handled."""


def _last_applied(obj: Json) -> str:
    return str(((obj.get("metadata") or {}).get("annotations") or {}).get(ANNOTATION) or "")


def claimed_fields(live: Json, struct: Struct, manager: str) -> FieldSet:
    """Fields with the value in the annotation; the manager may change them without conflict."""
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
    """Update the annotation of an object that has one, in place."""
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
