"""The keys of objects in etcd, which some errors of the API server show."""

from simcluster.kinds.resources import Resource
from simcluster.store.store import Stored

_PREFIXES = {
    "customresourcedefinitions.apiextensions.k8s.io": (
        "apiextensions.k8s.io/customresourcedefinitions"
    ),
    "endpoints": "services/endpoints",
    "ingresses.networking.k8s.io": "ingress",
    "nodes": "minions",
    "replicationcontrollers": "controllers",
    "services": "services/specs",
}
"""Prefixes that are not the plural."""


def etcd_key(resource: Resource, stored: Stored) -> str:
    """The key of an object."""
    prefix = _PREFIXES.get(resource.stored_in, resource.plural)
    if resource.custom is not None:
        prefix = f"apiextensions.kubernetes.io/{resource.group}/{resource.plural}"
    return f"/registry/{prefix}/{stored.key}"


def other_uid(resource: Resource, stored: Stored, uid: str) -> str:
    """The reason of the conflict of a PUT that names another object's uid."""
    return (
        f"StorageError: invalid object, Code: 4, Key: {etcd_key(resource, stored)}, "
        f"ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, "
        f"UID in object meta: {stored.uid}"
    )
