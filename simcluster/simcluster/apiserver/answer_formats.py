"""Chooses the format of an answer about a resource."""

from collections.abc import Mapping

from simcluster.apiserver.errors import ApiError, not_acceptable
from simcluster.apiserver.formats import Format, MetadataFormat, plain_format
from simcluster.apiserver.negotiation import META_VERSIONS, negotiate
from simcluster.kinds.resources import BUILT_IN, Resource
from simcluster.printing.table import TableFormat

_PLAIN: Mapping[int, Format] = {id(found): plain_format(found) for found in BUILT_IN}
_METADATA = {version: MetadataFormat(version) for version in META_VERSIONS}


def format_for(resource: Resource, accept: str, included: str = "") -> Format:
    """The format that an ``Accept`` header asks for.

    Args:
        resource: of the objects.
        accept: the header.
        included: the query's ``includeObject``.

    Raises:
        ApiError: 406, the format is not available; 400, ``included`` is unknown.
    """
    wanted = negotiate(accept)
    if wanted.shape == "Table":
        return TableFormat(resource, included, wanted.meta_version)
    if wanted.shape:
        return _METADATA[wanted.meta_version]
    return _PLAIN.get(id(resource)) or plain_format(resource)


def check_shape(resource: Resource, accept: str, *, is_list: bool) -> None:
    """Refuse ``PartialObjectMetadata`` for a list, and its list form for a single object.

    Raises:
        ApiError: 406.
    """
    shape = negotiate(accept).shape
    if shape.startswith("Partial") and shape.endswith("List") is not is_list:
        raise _other_shape(shape, resource, is_list)


def _other_shape(shape: str, resource: Resource, is_list: bool) -> ApiError:
    type_ = f"{resource.group.partition('.')[0] or 'core'}.{resource.kind}"
    if resource.custom is not None:
        type_ = "unstructured.Unstructured"
    there_is = f"is a list (*{type_}List)" if is_list else f"is not a list (*{type_})"
    return not_acceptable(f"you requested {shape}, but the requested object {there_is}")
