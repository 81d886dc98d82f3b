"""The continue token: where the next page of a list starts."""

import base64
import binascii
import posixpath
from typing import NamedTuple

import msgspec

from simcluster.apiserver.errors import ApiError, bad_request
from simcluster.apiserver.json_errors import json_error
from simcluster.store.stored import encode

_VERSION = "meta.k8s.io/v1"
_ALPHABET = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
LATEST = -1
"""Revision of a token that continues with the current objects."""


class ContinueToken(NamedTuple):
    """Where the next page starts, and the revision that all pages show."""

    revision: int
    start: str

    def text(self) -> str:
        """The token as clients carry it."""
        fields = {"v": _VERSION, "rv": self.revision, "start": self.start}
        return base64.urlsafe_b64encode(encode(fields)).decode().rstrip("=")


class _Fields(msgspec.Struct):
    v: str = ""
    rv: int = 0
    start: str = ""


def next_page(revision: int, last_key: str) -> ContinueToken:
    """The token of the page after ``last_key``."""
    return ContinueToken(revision, f"{last_key}\0")


def parse_continue(text: str) -> ContinueToken:
    """Read a token.

    Raises:
        ApiError: 400, the text is no continue token.
    """
    for position, byte in enumerate(text.encode()):
        if byte not in _ALPHABET:
            raise _invalid(f": illegal base64 data at input byte {position}")
    try:
        body = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error as error:
        raise _invalid(f": illegal base64 data at input byte {len(text) // 4 * 4}") from error
    try:
        fields = msgspec.json.decode(body, type=_Fields)
    except msgspec.ValidationError as error:
        raise _invalid(f": {error}") from error
    except msgspec.DecodeError as error:
        raise _invalid(f": {json_error(body)}") from error
    if fields.v != _VERSION:
        raise _invalid(f": server does not recognize this encoded version {fields.v}")
    if not fields.rv:
        raise _invalid(": incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
    if not fields.start:
        raise _invalid(": encoded start key empty (version meta.k8s.io/v1)")
    if posixpath.normpath(f"/{fields.start}") != f"/{fields.start}":
        raise _invalid(f": {fields.start}")
    return ContinueToken(fields.rv, fields.start)


def _invalid(why: str) -> ApiError:
    return bad_request(f"invalid continue token: continue key is not valid{why}")
