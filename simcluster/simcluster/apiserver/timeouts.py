"""The ``timeout`` of requests, which kubectl sends with ``--request-timeout``."""

import re
from collections.abc import Mapping

from simcluster.apiserver.errors import bad_request

_NUMBER = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_UNITS = ("ns", "us", "µs", "μs", "ms", "s", "m", "h")
_PART = re.compile(rf"{_NUMBER}([^.0-9]*)")
_DURATION = re.compile(rf"[-+]?(?:0|(?:(?>{_NUMBER})[^.0-9]*)+)")


def check_timeout(query: Mapping[str, str]) -> None:
    """Refuse a timeout that Go cannot read; every request is answered at once.

    Raises:
        ApiError: 400.
    """
    text = query.get("timeout") or "0"
    if why := _duration_error(text):
        prefix = "invalid timeout specified in the request URL - time: "
        raise bad_request(f'{prefix}{why} duration "{text}"')


def _duration_error(text: str) -> str:
    """What is wrong with a duration, in Go's words; empty for nothing."""
    if _DURATION.fullmatch(text) is None:
        return "invalid"
    if text.lstrip("-+") == "0":
        return ""
    for unit in _PART.findall(text):
        if not unit:
            return "missing unit in"
        if unit not in _UNITS:
            return f'unknown unit "{unit}" in'
    return ""
