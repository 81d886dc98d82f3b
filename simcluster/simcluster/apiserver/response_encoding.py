"""Turns a JSON body into the response: YAML, indentation, compression and common headers."""

import asyncio
import math
import re
import uuid
import zlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import NamedTuple

import msgspec
import yaml

from simcluster.apiserver.negotiation import JSON_TYPE, YAML_TYPE, find_wanted

GZIP_FROM_BYTES = 128 * 1024
"""The API server compresses answers from this size on."""
_GZIP_LEVEL = 1
_GZIP_WINDOW = 31
_TRUE = frozenset(("1", "t", "T", "true", "TRUE", "True"))
_PRETTY_AGENTS = ("curl", "Wget", "Mozilla/5.0")
_FLOW_SCHEMA = str(uuid.uuid4())
_PRIORITY_LEVEL = str(uuid.uuid4())


class Wishes(NamedTuple):
    """The preferences of a client.

    Args:
        accept: its ``Accept`` header.
        pretty: the ``pretty`` parameter; ``None`` where there is none.
        agent: its ``User-Agent``.
        takes_gzip: the client sent ``Accept-Encoding: gzip``.
    """

    accept: str = ""
    pretty: str | None = None
    agent: str = ""
    takes_gzip: bool = False


def wishes_of(headers: Mapping[str, str], query: Mapping[str, str]) -> Wishes:
    """The preferences in a request."""
    return Wishes(
        headers.get("Accept", ""),
        query.get("pretty"),
        headers.get("User-Agent", ""),
        "gzip" in headers.get("Accept-Encoding", ""),
    )


_AUDIT_PREFIX = str(uuid.uuid4())[:24]
_audit_numbers = count(1)


def common_headers(*, is_classified: bool = True) -> dict[str, str]:
    """Headers of every answer; those about priority only of a request that was classified."""
    headers = {
        "Audit-Id": f"{_AUDIT_PREFIX}{next(_audit_numbers) & 0xFFFFFFFFFFFF:012x}",
        "Cache-Control": "no-cache, private",
    }
    if is_classified:
        headers["X-Kubernetes-Pf-Flowschema-Uid"] = _FLOW_SCHEMA
        headers["X-Kubernetes-Pf-Prioritylevel-Uid"] = _PRIORITY_LEVEL
    return headers


def warning_values(warnings: Iterable[str]) -> Iterator[str]:
    """The value of one ``Warning`` header for each of these texts."""
    for text in warnings:
        quoted = text.replace("\\", "\\\\").replace('"', '\\"')
        yield f'299 - "{quoted}"'


def wants_yaml(accept: str) -> bool:
    """Whether the client prefers YAML."""
    wanted = find_wanted(accept)
    return wanted is not None and wanted.media_type == YAML_TYPE


def is_pretty(wishes: Wishes) -> bool:
    """Whether to indent: the client asks for it, or is a browser or curl."""
    wanted = find_wanted(wishes.accept)
    if wanted is not None and wanted.is_pretty:
        return True
    if wishes.pretty:
        return wishes.pretty in _TRUE
    return wishes.agent.startswith(_PRETTY_AGENTS)


def is_plain(wishes: Wishes) -> bool:
    """Whether the client takes compact JSON."""
    return not wants_yaml(wishes.accept) and not is_pretty(wishes)


_OTHER_TYPE = re.compile(r"[ynYN]|[-+]?[0-9]+[eE][-+]?[0-9]+")
"""Texts that Go reads as booleans and numbers, and Python does not."""


class _GoDumper(yaml.SafeDumper):
    """Writes texts as Go does: in double quotes where they look like another type."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    tag = "tag:yaml.org,2002:str"
    if "\n" in text:
        return dumper.represent_scalar(tag, text, style="|")
    resolved = dumper.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    is_ambiguous = resolved != tag or bool(_OTHER_TYPE.fullmatch(text))
    return dumper.represent_scalar(tag, text, style='"' if is_ambiguous else None)


_GoDumper.add_representer(str, _represent_text)


def styled(body: bytes, wishes: Wishes) -> tuple[bytes, str]:
    """A JSON body in the preferred form, and its content type."""
    if wants_yaml(wishes.accept):
        text = yaml.dump(
            msgspec.json.decode(body),
            Dumper=_GoDumper,
            default_flow_style=False,
            allow_unicode=True,
            width=math.inf,
        )
        return text.encode(), YAML_TYPE
    if is_pretty(wishes):
        return msgspec.json.format(body, indent=2), JSON_TYPE
    return body + b"\n", JSON_TYPE


async def compressed(body: bytes, wishes: Wishes) -> tuple[bytes, Mapping[str, str]]:
    """A large body, compressed in a thread if the client accepts that, and the headers of it."""
    if not wishes.takes_gzip or len(body) < GZIP_FROM_BYTES:
        return body, {}
    packed = await asyncio.to_thread(_gzip, body)
    return packed, {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}


def _gzip(body: bytes) -> bytes:
    packer = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
    return packer.compress(body) + packer.flush()
