"""Counts answered requests, as the API server's ``/metrics`` does."""

from __future__ import annotations

from collections import Counter

_HELP = (
    "# HELP apiserver_request_total Counter of apiserver requests broken out for each verb and"
    " HTTP response code.\n# TYPE apiserver_request_total counter\n"
)


class RequestMetrics:
    """Requests by method and status code; a watch counts when it ends."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, int]] = Counter()

    def count(self, method: str, status: int) -> None:
        """Count a request that was answered."""
        self._counts[method, status] += 1

    def exposition(self) -> bytes:
        """The counts in the text format of Prometheus."""
        lines = [
            f'apiserver_request_total{{code="{status}",verb="{method}"}} {count}\n'
            for (method, status), count in sorted(self._counts.items())
        ]
        return (_HELP + "".join(lines)).encode()
