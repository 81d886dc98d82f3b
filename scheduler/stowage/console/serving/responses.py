"""Answers as HTTP responses."""

from __future__ import annotations

import gzip
import hashlib
from http import HTTPStatus

import msgspec
from aiohttp import web

from stowage.console.answers.answer import Answer
from stowage.console.answers.manifests import ManifestError

JSON = "application/json"
GZIP_LEVEL = 4
MIN_GZIP_BYTES = 1_400
"""An answer that fits into one packet is not compressed."""


class Refusal(Answer, frozen=True, omit_defaults=True):
    """Why a request is refused."""

    message: str
    field: str = ""
    errors: tuple[ManifestError, ...] = ()


class ErrorBody(Answer, frozen=True):
    """The body of a refusal."""

    error: Refusal


class RefusedQuestion(msgspec.Struct, frozen=True):
    """A refusal with its status, as a child process tells it."""

    status: int
    body: bytes


class Encoded(msgspec.Struct, frozen=True):
    """An answer as JSON.

    Attributes:
        body: The JSON, compressed if `is_compressed`.
        tag: Its entity tag.
    """

    body: bytes
    is_compressed: bool
    tag: str


def encoded(answer: msgspec.Struct) -> Encoded:
    """Encode an answer, and compress it if it is large."""
    return compressed(msgspec.json.encode(answer))


def compressed(body: bytes) -> Encoded:
    """JSON, compressed if it is large."""
    tag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
    if len(body) < MIN_GZIP_BYTES:
        return Encoded(body, False, tag)
    return Encoded(gzip.compress(body, GZIP_LEVEL, mtime=0), True, tag)


def json_response(request: web.Request, answer: Encoded) -> web.Response:
    """The response to a request: not modified, compressed, or as it is."""
    headers = {"ETag": answer.tag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
    if request.headers.get("If-None-Match") == answer.tag:
        return web.Response(status=HTTPStatus.NOT_MODIFIED, headers=headers)
    body = answer.body
    if answer.is_compressed:
        if "gzip" in request.headers.get("Accept-Encoding", ""):
            headers["Content-Encoding"] = "gzip"
        else:
            body = gzip.decompress(body)
    return web.Response(body=body, content_type=JSON, headers=headers)


def error_response(
    status: int,
    message: str,
    field: str = "",
    errors: tuple[ManifestError, ...] = (),
) -> web.Response:
    """A refusal."""
    return refused_response(refused(status, message, field, errors))


def refused(
    status: int, message: str, field: str = "", errors: tuple[ManifestError, ...] = ()
) -> RefusedQuestion:
    """A refusal as a value."""
    body = msgspec.json.encode(ErrorBody(Refusal(message, field, errors)))
    return RefusedQuestion(int(status), body)


def refused_response(refusal: RefusedQuestion) -> web.Response:
    """The response of a refusal."""
    headers = {"Cache-Control": "no-store"}
    if refusal.status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers["Retry-After"] = "1"
    return web.Response(
        status=refusal.status, body=refusal.body, content_type=JSON, headers=headers
    )
