"""``/debug/profile`` and ``/debug/flags/v``."""

from __future__ import annotations

import math
from http import HTTPStatus

import structlog
from aiohttp import web

from stowage.operator.logging.verbosity import set_verbosity
from stowage.operator.serving.profile import DEFAULT_S, MAX_S, ProfileInProgressError, Profiler

log = structlog.get_logger("stowage.operator.serving.debug")


async def answer_profile(request: web.Request, profiler: Profiler) -> web.Response:
    """Take a profile of ``?seconds=`` and answer with it."""
    try:
        return web.Response(text=await profiler.profile(_seconds(request)))
    except ValueError as error:
        return web.Response(status=HTTPStatus.BAD_REQUEST, text=f"{error}\n")
    except ProfileInProgressError:
        return web.Response(status=HTTPStatus.CONFLICT, text="another profile is being taken\n")


def _seconds(request: web.Request) -> float:
    """The query parameter ``seconds``.

    Raises:
        ValueError: it is no number, or out of range.
    """
    text = request.query.get("seconds", str(DEFAULT_S))
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= MAX_S:
        raise ValueError(f"seconds: expected more than 0 and at most {MAX_S:g}, got {text!r}")
    return seconds


async def answer_verbosity(request: web.Request) -> web.Response:
    """PUT of the log level; texts and status codes of kube-scheduler's ``/debug/flags/v``."""
    if request.method != "PUT":
        return web.Response(status=HTTPStatus.NOT_ACCEPTABLE, text="unsupported http method\n")
    text = (await request.read()).decode(errors="replace")
    if not (text.isascii() and text.isdecimal()):
        message = f"failed set klog.logging.verbosity {text}: expected a whole number, 0 or more\n"
        return web.Response(status=HTTPStatus.BAD_REQUEST, text=message)
    set_verbosity(int(text))
    log.info("log level changed", verbosity=int(text))
    return web.Response(text=f"successfully set klog.logging.verbosity to {text}\n")
