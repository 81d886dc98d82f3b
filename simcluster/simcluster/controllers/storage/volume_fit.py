"""The match of volumes and claims, as in kube-controller-manager."""

from collections.abc import Iterable

from simcluster.controllers.ownership import is_selected
from simcluster.kinds.admission.volumes import BETA_CLASS
from simcluster.kinds.resources import PERSISTENT_VOLUME_CLAIMS
from simcluster.store.store import Stored
from simcluster.values import Json
from stowage.api import quantity_value

SELECTED_NODE = "volume.kubernetes.io/selected-node"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
STORAGE_PROVISIONER = "volume.kubernetes.io/storage-provisioner"
BETA_STORAGE_PROVISIONER = "volume.beta.kubernetes.io/storage-provisioner"
NO_PROVISIONER = "kubernetes.io/no-provisioner"


def annotation(obj: Json, name: str) -> str:
    """An annotation's value; empty if it is not there."""
    return str((obj["metadata"].get("annotations") or {}).get(name, ""))


def class_of(obj: Json) -> str:
    """The storage class of a claim or volume; empty for none."""
    return annotation(obj, BETA_CLASS) or obj["spec"].get("storageClassName") or ""


def claim_reference(claim: Stored) -> Json:
    """The ``claimRef`` of a volume for a claim."""
    return {
        "kind": PERSISTENT_VOLUME_CLAIMS.kind,
        "apiVersion": PERSISTENT_VOLUME_CLAIMS.api_version,
        "namespace": claim.namespace,
        "name": claim.name,
        "uid": claim.uid,
        "resourceVersion": str(claim.revision),
    }


def is_claimed_by(volume: Stored, claim: Stored) -> bool:
    """Whether a volume's ``claimRef`` names the claim, or reserves the volume for its name."""
    reference = volume.spec.get("claimRef") or {}
    named = (reference.get("namespace"), reference.get("name"))
    uid = claim.uid
    return named == (claim.namespace, claim.name) and reference.get("uid") in {None, "", uid}


def requested(claim: Stored) -> str:
    """The storage a claim asks for."""
    requests = (claim.spec.get("resources") or {}).get("requests") or {}
    return str(requests.get("storage", "0"))


def capacity_of(volume: Stored) -> int:
    """A volume's size in bytes."""
    return quantity_value((volume.spec.get("capacity") or {}).get("storage", "0"))


def mode_of(obj: Json) -> str:
    """``Filesystem`` or ``Block``."""
    return str(obj["spec"].get("volumeMode") or "Filesystem")


def fits(volume: Stored, claim: Stored) -> bool:
    """Whether a volume has the modes and size a claim asks for; ignores class and labels."""
    has, wants = volume.spec, claim.spec
    return (
        mode_of(volume.obj) == mode_of(claim.obj)
        and set(wants.get("accessModes") or ()) <= set(has.get("accessModes") or ())
        and capacity_of(volume) >= quantity_value(requested(claim))
    )


def best_volume(volumes: Iterable[Stored], claim: Stored) -> Stored | None:
    """The smallest free volume that fits a claim; ``volumes`` are of the claim's class."""
    selector = claim.spec.get("selector")
    fitting = [
        volume
        for volume in volumes
        if not volume.spec.get("claimRef")
        and not volume.is_terminating
        and (selector is None or is_selected(selector, volume))
        and fits(volume, claim)
    ]
    return min(fitting, key=lambda volume: (capacity_of(volume), volume.name), default=None)
