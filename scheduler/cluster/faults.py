"""Faults for tests: requests that fail, answers that get lost, streams that break.

A :class:`Faults` object belongs to one server. Rules are tried in the order they were added; the
first that matches a request is applied and counted. They are set from Python in the same process,
or, where the server was started with ``faults_over_http``, under ``/stowage/faults``:

- ``GET`` lists the rules left, ``POST`` adds one (a JSON object of :class:`FaultRule`'s fields),
  ``DELETE`` drops them all;
- ``POST /stowage/faults/drop-watches`` ends every watch;
- ``POST /stowage/faults/forget-history`` makes watches that start in the past answer 410;
- ``POST /stowage/faults/away`` with ``{"seconds": 2}`` closes the listening socket for a while.
"""

import re

import msgspec

from scheduler.cluster.errors import ApiError, bad_request

_REASONS = {
    409: "Conflict",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class FaultRule(msgspec.Struct, forbid_unknown_fields=True):
    """What happens to the next matching requests.

    Args:
        method: HTTP method; empty for any.
        path: regular expression searched for in path and query; empty for any.
        times: how many requests it hits.
        skip: how many matching requests pass before.
        delay_s: wait this long before the request is handled.
        status: answer with this code instead of handling the request.
        retry_after_s: ``Retry-After`` of that answer.
        is_applied: handle the request before failing it: the write happens, the answer is lost.
        is_dropped: close the connection without an answer.
        hang_s: keep the client waiting this long, then close the connection.
    """

    method: str = ""
    path: str = ""
    times: int = 1
    skip: int = 0
    delay_s: float = 0.0
    status: int = 0
    retry_after_s: int = 0
    is_applied: bool = False
    is_dropped: bool = False
    hang_s: float = 0.0

    def matches(self, method: str, path: str) -> bool:
        """Whether a request is one of this rule's."""
        return self.method in {"", method} and re.search(self.path, path) is not None

    def error(self) -> ApiError:
        """The answer given instead."""
        return ApiError(
            self.status,
            _REASONS.get(self.status, ""),
            "fault injected by a test",
            retry_after_s=self.retry_after_s,
        )


class Faults:
    """The faults still to come, and how many have happened."""

    def __init__(self) -> None:
        self.rules: list[FaultRule] = []
        self.hits = 0

    def add(self, rule: FaultRule) -> None:
        """Add a rule behind those already there."""
        self.rules.append(rule)

    def clear(self) -> None:
        """Drop every rule."""
        self.rules.clear()

    def take(self, method: str, path: str) -> FaultRule | None:
        """The rule that hits a request, counted as used."""
        if not self.rules:
            return None
        for rule in self.rules:
            if not rule.matches(method, path):
                continue
            if rule.skip > 0:
                rule.skip -= 1
                continue
            rule.times -= 1
            if rule.times <= 0:
                self.rules.remove(rule)
            self.hits += 1
            return rule
        return None


def parse_rule(body: bytes) -> FaultRule:
    """Read a rule from JSON.

    Raises:
        ApiError: 400, an unknown field or a value of the wrong type.
    """
    try:
        rule = msgspec.json.decode(body, type=FaultRule)
        re.compile(rule.path)
    except (msgspec.DecodeError, re.error) as error:
        raise bad_request(f"fault rule: {error}") from error
    return rule
