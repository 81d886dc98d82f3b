"""Health endpoints with the paths and texts of apiserver's ``healthz`` package."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

import msgspec
from aiohttp import web

Check = Callable[[], bool]
"""Returns whether a part of the process is healthy."""

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ObserveCheck(Protocol):
    """Called with each result of a check of a requested endpoint."""

    def __call__(self, check: str, endpoint: str, *, is_ok: bool) -> None:
        """`endpoint` is ``healthz``, ``livez`` or ``readyz``."""


NOSNIFF = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache, private"}


class Checks(msgspec.Struct, frozen=True, kw_only=True):
    """The named checks of /healthz, /livez and /readyz; each check also has its own path.

    An endpoint without checks has the check ``ping``, which always succeeds.

    Attributes:
        health: Checks of /healthz.
        live: Checks of /livez.
        ready: Checks of /readyz.
        ready_notes: Returns additional lines for ``/readyz?verbose``.
    """

    health: Mapping[str, Check]
    live: Mapping[str, Check]
    ready: Mapping[str, Check]
    ready_notes: Callable[[], Sequence[str]] = tuple

    def by_endpoint(self) -> Mapping[str, Mapping[str, Check]]:
        """Name of the endpoint -> its checks."""
        every = {"healthz": self.health, "livez": self.live, "readyz": self.ready}
        return {endpoint: checks or {"ping": _is_alive} for endpoint, checks in every.items()}


def health_routes(checks: Checks, observe: ObserveCheck) -> list[web.RouteDef]:
    """The routes of all endpoints and of each of their checks."""
    routes = []
    for endpoint, named in checks.by_endpoint().items():
        notes = checks.ready_notes if endpoint == "readyz" else tuple
        observed = {
            name: _observed(name, endpoint, check, observe) for name, check in named.items()
        }
        routes.append(web.get(f"/{endpoint}", _root(endpoint, observed, notes)))
        for name, check in named.items():
            routes.append(web.get(f"/{endpoint}/{name}", _single(check)))
    return routes


def report(
    endpoint: str, checks: Mapping[str, Check], excluded: set[str], *, verbose: bool
) -> tuple[int, str]:
    """The status and text of an answer: ``ok``, or a line for each check."""
    lines, failed = [], False
    for name, check in checks.items():
        if name in excluded:
            lines.append(f"[+]{name} excluded: ok\n")
        elif check():
            lines.append(f"[+]{name} ok\n")
        else:
            failed = True
            # The endpoint is public, so it does not show the reason.
            lines.append(f"[-]{name} failed: reason withheld\n")
    unknown = sorted(excluded - checks.keys())
    if unknown:
        quoted = ",".join(f'"{name}"' for name in unknown)
        lines.append(f"warn: some health checks cannot be excluded: no matches for {quoted}\n")
    if failed:
        return 500, f"{''.join(lines)}{endpoint} check failed\n"
    return 200, f"{''.join(lines)}{endpoint} check passed\n" if verbose else "ok"


def _root(endpoint: str, checks: Mapping[str, Check], notes: Callable[[], Sequence[str]]) -> Answer:
    async def answer(request: web.Request) -> web.Response:
        excluded = set(request.query.getall("exclude", []))
        verbose = "verbose" in request.query
        status, text = report(endpoint, checks, excluded, verbose=verbose)
        if verbose:
            text = "".join(f"{line}\n" for line in notes()) + text
        return web.Response(status=status, text=text, headers=NOSNIFF)

    return answer


def _observed(name: str, endpoint: str, check: Check, observe: ObserveCheck) -> Check:
    def run() -> bool:
        is_ok = check()
        observe(name, endpoint, is_ok=is_ok)
        return is_ok

    return run


def _single(check: Check) -> Answer:
    async def answer(_request: web.Request) -> web.Response:
        if check():
            return web.Response(text="ok", headers=NOSNIFF)
        text = "internal server error: reason withheld\n"
        return web.Response(status=500, text=text, headers=NOSNIFF)

    return answer


def _is_alive() -> bool:
    return True
