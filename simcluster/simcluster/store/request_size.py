"""Refuses objects that are too large for one request to etcd."""

from simcluster.apiserver.errors import internal
from simcluster.kinds.resources import BUILT_IN, POD_GROUP_KINDS
from simcluster.schema.protobuf_size import protobuf_size
from simcluster.schema.types import Struct, type_of_kind
from simcluster.store.stored import Stored

MAX_REQUEST_BYTES = 3 * 512 * 1024
"""The ``--max-request-bytes`` of etcd."""
MAX_MESSAGE_BYTES = 2 * 1024 * 1024
"""The longest message that the API server's client of etcd sends."""

_AS_JSON = {
    "customresourcedefinitions.apiextensions.k8s.io",
    "apiservices.apiregistration.k8s.io",
}
_KINDS = {
    found.stored_in: found
    for found in (*POD_GROUP_KINDS, *BUILT_IN)
    if not found.storage_version and found.stored_in not in _AS_JSON
}


def check_request_size(collection: str, stored: Stored) -> None:
    """Refuse a revision that etcd would refuse.

    Built-in kinds are kept in protobuf, which is never longer than JSON; all others are kept as
    JSON.

    Raises:
        ApiError: 500, it is too large.
    """
    owners = stored.managed_fields
    num_owner_bytes = 0 if owners is None else len(owners.text)
    size = len(stored.content) + num_owner_bytes
    if size <= MAX_REQUEST_BYTES:
        return
    struct = _struct_of(collection)
    if struct is not None:
        size = protobuf_size(stored.obj, struct) + num_owner_bytes
    if size > MAX_MESSAGE_BYTES:
        why = f"trying to send message larger than max ({size} vs. {MAX_MESSAGE_BYTES})"
        raise internal(f"rpc error: code = ResourceExhausted desc = {why}")
    if size > MAX_REQUEST_BYTES:
        raise internal("etcdserver: request is too large")


def _struct_of(collection: str) -> Struct | None:
    resource = _KINDS.get(collection)
    return None if resource is None else type_of_kind(resource.group, resource.kind)
