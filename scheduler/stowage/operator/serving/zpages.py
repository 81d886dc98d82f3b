"""``/statusz`` and ``/flagz``, with the texts of component-base's zpages."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from importlib import metadata

from aiohttp import web

from stowage.operator.clock import Clock

COMPONENT = "stowage"
WARNING = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility "
    "guarantees and is for debugging purposes only."
)
_ACCEPTED = ("text/plain", "text/*", "*/*")


class Statusz:
    """The text of ``/statusz``: since when the process runs, which version, and its paths.

    Args:
        clock: Time; the process counts as started now.
        paths: The paths that the server answers.
    """

    def __init__(self, clock: Clock, paths: Sequence[str]) -> None:
        self._clock = clock
        self._started = clock.monotonic()
        self._started_at = clock.unix_date()
        self._paths = paths

    def text(self) -> str:
        """The page."""
        up_s = int(self._clock.monotonic() - self._started)
        up = f"{up_s // 3600} hr {up_s // 60 % 60:02} min {up_s % 60:02} sec"
        return (
            f"\n{COMPONENT} statusz\n{WARNING}\n\n"
            f"Started: {self._started_at}\n"
            f"Up: {up}\n"
            f"Python version: {platform.python_version()}\n"
            f"Binary version: {metadata.version('stowage')}\n"
            f"Paths: {' '.join(self._paths)}\n"
        )


def flagz_text(flags: Mapping[str, str]) -> str:
    """The text of ``/flagz``: the value of every flag, in alphabetical order."""
    lines = "".join(f"{name}={flags[name]}\n" for name in sorted(flags))
    return f"\n{COMPONENT} flags\n{WARNING}\n\n{lines}"


def as_page(request: web.Request, text: str) -> web.Response:
    """The page as plain text; 406 for a client that accepts no plain text."""
    accepted = request.headers.get("Accept", "*/*").split(",")
    if not any(each.partition(";")[0].strip() in _ACCEPTED for each in accepted):
        return web.Response(status=406, text="media type not acceptable, must be: text/plain\n")
    return web.Response(text=text)
