"""Admission of claims and volumes: default class, growth, and the finalizers that protect them."""

from simcluster.apiserver.errors import forbidden
from simcluster.kinds.admission.limit_ranges import review_claim_growth
from simcluster.kinds.resources import PERSISTENT_VOLUME_CLAIMS, STORAGE_CLASSES
from simcluster.store.store import Store, Stored
from simcluster.values import Json
from stowage.api.values.quantity import quantity_nano_value

CLAIM_FINALIZER = "kubernetes.io/pvc-protection"
VOLUME_FINALIZER = "kubernetes.io/pv-protection"
#: The annotation that named the class before ``storageClassName`` did.
BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
_IS_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


def admit_claim(store: Store, claim: Json) -> None:
    """Protect a claim (StorageObjectInUseProtection); without a class it gets the default one."""
    _protect(claim, CLAIM_FINALIZER)
    set_default_class(store, claim)


def set_default_class(store: Store, claim: Json) -> bool:
    """Give a claim that says nothing about its class the default one; whether there is one."""
    if "storageClassName" in claim["spec"] or BETA_CLASS in (
        claim["metadata"].get("annotations") or {}
    ):
        return False
    classes = store.collection(STORAGE_CLASSES.stored_in).items()
    defaults = [stored for stored in classes if is_default_class(stored)]
    if not defaults:
        return False
    # Of several the newest, and of equally old ones the first by name.
    newest = max(defaults, key=lambda stored: str(stored.metadata["creationTimestamp"]))
    claim["spec"]["storageClassName"] = newest.name
    return True


def is_default_class(storage_class: Stored) -> bool:
    """Whether claims that say nothing about their class get this one."""
    return storage_class.annotations.get(_IS_DEFAULT_CLASS) == "true"


def review_claim_change(store: Store, claim: Json, old: Json) -> None:
    """Let a claim grow if its class allows it (PersistentVolumeClaimResize), within the limits.

    Raises:
        ApiError: 403.
    """
    review_claim_growth(store, claim, old)
    if _requested(claim) <= _requested(old):
        return
    stored = store.get(STORAGE_CLASSES.stored_in, "", claim["spec"].get("storageClassName") or "")
    if stored is None or not stored.obj.get("allowVolumeExpansion"):
        why = (
            "only dynamically provisioned pvc can be resized and the storageclass that provisions "
            "the pvc must support resize"
        )
        raise forbidden(PERSISTENT_VOLUME_CLAIMS, claim["metadata"]["name"], why)


def _requested(claim: Json) -> int:
    requests = (claim["spec"].get("resources") or {}).get("requests") or {}
    return quantity_nano_value(requests.get("storage", "0"))


def admit_volume(_store: Store, volume: Json) -> None:
    """Protect a volume (StorageObjectInUseProtection)."""
    _protect(volume, VOLUME_FINALIZER)


def _protect(obj: Json, finalizer: str) -> None:
    finalizers = obj["metadata"].get("finalizers") or []
    if finalizer not in finalizers:
        obj["metadata"]["finalizers"] = [*finalizers, finalizer]
