"""Which format an ``Accept`` header asks for.

Follows apiserver's ``NegotiateMediaTypeOptions``: what a client wants most comes first, and of
what it wants alike, what it names before what it means by a wildcard.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Literal, NamedTuple

from simcluster.apiserver.errors import ApiError, not_acceptable

Shape = Literal["", "Table", "PartialObjectMetadata", "PartialObjectMetadataList"]

JSON_TYPE = "application/json"
YAML_TYPE = "application/yaml"
PROTOBUF_TYPE = "application/vnd.kubernetes.protobuf"
_MATCHES = {
    JSON_TYPE: JSON_TYPE,
    YAML_TYPE: YAML_TYPE,
    "application/*": JSON_TYPE,
    "*/*": JSON_TYPE,
}
_SHAPES: Mapping[str, Shape] = {
    "Table": "Table",
    "PartialObjectMetadata": "PartialObjectMetadata",
    "PartialObjectMetadataList": "PartialObjectMetadataList",
}
META_VERSIONS = ("v1", "v1beta1")
_STREAMS = f"{JSON_TYPE};stream=watch, {PROTOBUF_TYPE};stream=watch"


class Clause(NamedTuple):
    """One media type that a client takes, with its parameters; ``quality`` is at most 1."""

    media_type: str
    options: Mapping[str, str]
    quality: float


class Wanted(NamedTuple):
    """How an answer is to be written.

    Args:
        media_type: JSON or YAML.
        shape: what objects are turned into; empty for their own kind.
        meta_version: version of ``meta.k8s.io`` of that shape.
        is_pretty: it is to be indented.
    """

    media_type: str = JSON_TYPE
    shape: Shape = ""
    meta_version: str = "v1"
    is_pretty: bool = False


def clauses(accept: str) -> list[Clause]:
    """What an ``Accept`` header names, the most wanted first."""
    found = [_clause(text) for text in accept.split(",") if text.strip()]
    return sorted(found, key=lambda each: (-each.quality, each.media_type.count("*")))


def _clause(text: str) -> Clause:
    media_type, *parameters = [part.strip() for part in text.split(";")]
    options = dict(part.split("=", 1) for part in parameters if "=" in part)
    try:
        quality = float(options.pop("q", "1"))
    except ValueError:
        quality = 1.0
    return Clause(media_type, options, quality)


@lru_cache(maxsize=256)
def find_wanted(accept: str) -> Wanted | None:
    """The first form of JSON or YAML that a client takes; ``None`` if it takes neither."""
    if not accept.strip():
        return Wanted()
    return next(filter(None, map(_wanted, clauses(accept))), None)


def _wanted(clause: Clause) -> Wanted | None:
    media_type, options = _MATCHES.get(clause.media_type), clause.options
    if media_type is None:
        return None
    is_pretty = options.get("pretty") == "1"
    kind = options.get("as", "")
    if not kind:
        return Wanted(media_type, is_pretty=is_pretty)
    group, version = options.get("g", ""), options.get("v", "")
    if kind not in _SHAPES or group != "meta.k8s.io" or version not in META_VERSIONS:
        return None
    return Wanted(media_type, _SHAPES[kind], version, is_pretty)


def negotiate(accept: str) -> Wanted:
    """The first form of JSON or YAML that a client takes.

    Raises:
        ApiError: 406, it takes neither.
    """
    wanted = find_wanted(accept)
    if wanted is None:
        raise _no_match(accept)
    return wanted


def check_streams(wanted: Wanted) -> None:
    """Refuse a watch in YAML, which has no end and no lines.

    Raises:
        ApiError: 406.
    """
    if wanted.media_type != JSON_TYPE:
        raise not_acceptable(f"only the following media types are accepted: {_STREAMS}")


def _no_match(accept: str) -> ApiError:
    """406 in a real server's words, unless they would promise what was just refused."""
    known = [JSON_TYPE, YAML_TYPE]
    if "protobuf" not in accept:
        known.append(PROTOBUF_TYPE)
    return not_acceptable(f"only the following media types are accepted: {', '.join(known)}")
