"""Admission of claims and volumes: the default class, and the finalizers that protect them."""

from simcluster.kinds.resources import STORAGE_CLASSES
from simcluster.store.store import Store
from simcluster.values import Json

CLAIM_FINALIZER = "kubernetes.io/pvc-protection"
VOLUME_FINALIZER = "kubernetes.io/pv-protection"
_IS_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


def admit_claim(store: Store, claim: Json) -> None:
    """Protect a claim (StorageObjectInUseProtection); without a class it gets the default one."""
    _protect(claim, CLAIM_FINALIZER)
    if "storageClassName" in claim["spec"]:
        return
    for stored in store.collection(STORAGE_CLASSES.stored_in):
        annotations = stored.annotations
        if annotations.get(_IS_DEFAULT_CLASS) == "true":
            claim["spec"]["storageClassName"] = stored.name
            return


def admit_volume(_store: Store, volume: Json) -> None:
    """Protect a volume (StorageObjectInUseProtection)."""
    _protect(volume, VOLUME_FINALIZER)


def _protect(obj: Json, finalizer: str) -> None:
    finalizers = obj["metadata"].get("finalizers") or []
    if finalizer not in finalizers:
        obj["metadata"]["finalizers"] = [*finalizers, finalizer]
