"""Health endpoints in the words of apiserver's ``healthz`` package."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec
from aiohttp import web

Check = Callable[[], bool]
"""Whether something is well."""

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]

NOSNIFF = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache, private"}


class Checks(msgspec.Struct, frozen=True, kw_only=True):
    """Named checks behind /healthz, /livez and /readyz; each also has a path of its own.

    ``ping`` stands in where there is none.

    Attributes:
        ready_notes: Lines that /readyz shows when asked to be verbose; they fail nothing.
    """

    health: Mapping[str, Check]
    live: Mapping[str, Check]
    ready: Mapping[str, Check]
    ready_notes: Callable[[], Sequence[str]] = tuple

    def by_endpoint(self) -> Mapping[str, Mapping[str, Check]]:
        """``healthz`` and so on -> its checks."""
        every = {"healthz": self.health, "livez": self.live, "readyz": self.ready}
        return {endpoint: checks or {"ping": _is_alive} for endpoint, checks in every.items()}


def health_routes(checks: Checks) -> list[web.RouteDef]:
    """The routes of all endpoints and of their single checks."""
    routes = []
    for endpoint, named in checks.by_endpoint().items():
        notes = checks.ready_notes if endpoint == "readyz" else tuple
        routes.append(web.get(f"/{endpoint}", _root(endpoint, named, notes)))
        for name, check in named.items():
            routes.append(web.get(f"/{endpoint}/{name}", _single(check)))
    return routes


def report(
    endpoint: str, checks: Mapping[str, Check], excluded: set[str], *, verbose: bool
) -> tuple[int, str]:
    """The status and text for one request: ``ok``, or a line for each check."""
    lines, failed = [], False
    for name, check in checks.items():
        if name in excluded:
            lines.append(f"[+]{name} excluded: ok\n")
        elif check():
            lines.append(f"[+]{name} ok\n")
        else:
            failed = True
            # The endpoint is public, so it does not tell why.
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


def _single(check: Check) -> Answer:
    async def answer(_request: web.Request) -> web.Response:
        if check():
            return web.Response(text="ok", headers=NOSNIFF)
        text = "internal server error: reason withheld\n"
        return web.Response(status=500, text=text, headers=NOSNIFF)

    return answer


def _is_alive() -> bool:
    return True
