"""Chooses the format of an answer by the ``Accept`` header.

Follows apiserver's ``NegotiateMediaTypeOptions``: clauses of higher quality come first, and of
equal quality exact types before wildcards.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Literal, NamedTuple

from simcluster.apiserver.errors import not_acceptable

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
_SHAPES: tuple[Shape, ...] = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")
META_VERSIONS = ("v1", "v1beta1")
_STREAMS = f"{JSON_TYPE};stream=watch, {PROTOBUF_TYPE};stream=watch"


class Clause(NamedTuple):
    """One accepted media type with its parameters; ``quality`` is at most 1."""

    media_type: str
    options: Mapping[str, str]
    quality: float


class Wanted(NamedTuple):
    """The format of an answer.

    Args:
        media_type: JSON or YAML.
        shape: kind that objects are converted to; empty for their own kind.
        meta_version: version of ``meta.k8s.io`` of that shape.
        is_pretty: the answer is indented.
    """

    media_type: str = JSON_TYPE
    shape: Shape = ""
    meta_version: str = "v1"
    is_pretty: bool = False


def clauses(accept: str) -> list[Clause]:
    """The clauses of an ``Accept`` header, the preferred one first."""
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
    """The preferred form of JSON or YAML; ``None`` if the client accepts neither."""
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
    shape = next((each for each in _SHAPES if each == kind), None)
    if shape is None or group != "meta.k8s.io" or version not in META_VERSIONS:
        return None
    return Wanted(media_type, shape, version, is_pretty)


def negotiate(accept: str) -> Wanted:
    """The preferred form of JSON or YAML.

    Raises:
        ApiError: 406, the client accepts neither.
    """
    wanted = find_wanted(accept)
    if wanted is None:
        # Protobuf is not named to a client that has just asked for it.
        known = (JSON_TYPE, YAML_TYPE, *(() if "protobuf" in accept else (PROTOBUF_TYPE,)))
        raise not_acceptable(f"only the following media types are accepted: {', '.join(known)}")
    return wanted


def check_streams(wanted: Wanted) -> None:
    """Refuse a watch in YAML.

    Raises:
        ApiError: 406.
    """
    if wanted.media_type != JSON_TYPE:
        raise not_acceptable(f"only the following media types are accepted: {_STREAMS}")
