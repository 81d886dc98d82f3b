"""Requests and answers without HTTP, and the formats of answers."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from simcluster.apiserver.errors import ApiError, internal, not_acceptable
from simcluster.apiserver.formats import Format, MetadataFormat, plain_format
from simcluster.apiserver.negotiation import JSON_TYPE, META_VERSIONS, negotiate
from simcluster.auth.users import ADMINISTRATOR, User
from simcluster.kinds.resources import BUILT_IN, POD_GROUP_KINDS, Resource
from simcluster.printing.table import TableFormat
from simcluster.store.store import encode

_PLAIN: Mapping[int, Format] = {
    id(found): plain_format(found) for found in (*BUILT_IN, *POD_GROUP_KINDS)
}
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
    if resource.custom is not None and not is_list:
        return internal("content is not a list")
    type_ = f"{resource.group.partition('.')[0] or 'core'}.{resource.kind}"
    if resource.custom is not None:
        type_ = "unstructured.Unstructured"
    there_is = f"is a list (*{type_}List)" if is_list else f"is not a list (*{type_})"
    return not_acceptable(f"you requested {shape}, but the requested object {there_is}")


class ApiRequest(NamedTuple):
    """A request; ``upgrades`` asks for another protocol, ``if_none_match`` is an ETag."""

    method: str
    path: str
    query: Mapping[str, str]
    content_type: str = ""
    accept: str = ""
    body: bytes = b""
    user: User = ADMINISTRATOR
    user_agent: str = ""
    upgrades: bool = False
    if_none_match: str = ""

    @property
    def is_dry_run(self) -> bool:
        """Whether nothing is to be stored."""
        return self.query.get("dryRun") == "All"

    @property
    def directive(self) -> str:
        """How unknown fields are treated: Strict, Warn or Ignore."""
        return self.query.get("fieldValidation", "")

    @property
    def manager(self) -> str:
        """The field manager."""
        named = self.query.get("fieldManager", "")
        return named or self.user_agent.partition("/")[0][:128] or "unknown"

    def format_for(self, resource: Resource) -> Format:
        """The format of the answer.

        Raises:
            ApiError: 406 or 400, the format is not available.
        """
        return format_for(resource, self.accept, self.query.get("includeObject", ""))


class Answer(NamedTuple):
    """Status, body, further headers and warnings of an answer."""

    status: int
    body: bytes
    retry_after_s: int = 0
    warnings: tuple[str, ...] = ()
    headers: Mapping[str, str] = MappingProxyType({})
    content_type: str = JSON_TYPE

    def warning(self, warnings: tuple[str, ...]) -> "Answer":
        """The same with further warnings."""
        return self._replace(warnings=self.warnings + warnings) if warnings else self


def error_answer(error: ApiError) -> Answer:
    """The answer that carries an error."""
    return Answer(error.code, encode(error.status()), error.retry_after_s)
