"""Hashes of pod templates, and the revision annotations of Deployments."""

import hashlib

import msgspec

from simcluster.store.store import Stored
from simcluster.values import Json

HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
REVISION_HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_NOT_COPIED = frozenset((_LAST_APPLIED, REVISION, REVISION_HISTORY, DESIRED_REPLICAS, MAX_REPLICAS))


def content_hash(content: Json, salt: int = 0) -> str:
    """Ten characters that change with the content; ``salt`` gives others for the same content."""
    digest = hashlib.blake2b(
        msgspec.json.encode(content, order="sorted"), digest_size=5, salt=str(salt).encode()
    ).hexdigest()
    return digest.translate(str.maketrans("0123456789aeiou", "bcdfghjklmnpqrs"))


def same_template(one: Json, other: Json) -> bool:
    """Whether two pod templates mean the same but for the label that carries the hash."""
    return _without_hash(one) == _without_hash(other)


def _without_hash(template: Json) -> Json:
    metadata = template.get("metadata") or {}
    labels = dict(metadata.get("labels") or {})
    labels.pop(HASH_LABEL, None)
    return {**template, "metadata": {**metadata, "labels": labels}}


def revision_of(stored: Stored) -> int:
    """The number of a ReplicaSet's revision; 0 if it has none."""
    return int((stored.obj["metadata"].get("annotations") or {}).get(REVISION, "0"))


def set_annotations(
    before: Json, deployment: Stored, revision: int, sizes: tuple[int, int]
) -> Json:
    """The annotations of a Deployment's current ReplicaSet: its own, and the Deployment's.

    Args:
        before: what the set has now.
        deployment: its annotations, such as the change cause, are copied.
        revision: the new number of the set; the old one goes to the history.
        sizes: wanted replicas, and the most there may be.
    """
    copied = {
        key: value
        for key, value in (deployment.obj["metadata"].get("annotations") or {}).items()
        if key not in _NOT_COPIED
    }
    annotations = {**before, **copied}
    old = int(before.get(REVISION, "0"))
    if old < revision:
        if old:
            history = before.get(REVISION_HISTORY)
            annotations[REVISION_HISTORY] = f"{history},{old}" if history else str(old)
        annotations[REVISION] = str(revision)
    desired, maximum = sizes
    return {**annotations, DESIRED_REPLICAS: str(desired), MAX_REPLICAS: str(maximum)}
