"""Fault rules: requests that fail, answers that get lost, streams that break.

A :class:`Faults` object belongs to one server. Rules are tried in the order they were added; the
first rule that matches a request and whose random choice hits is applied and counted. Rules are set
from Python in the same process or, if the server was started with ``faults_over_http``, under
``/stowage/faults``:

- ``GET`` lists the rules left and counts the hits, ``POST`` adds one (a JSON object of
  :class:`FaultRule`'s fields), ``DELETE`` drops them all;
- ``POST /stowage/faults/drop-watches`` ends every watch;
- ``POST /stowage/faults/forget-history`` makes watches that start in the past answer 410;
- ``POST /stowage/faults/away`` with ``{"seconds": 2}`` closes the listening socket for a while;
- ``POST /stowage/faults/back-up`` keeps a copy of all objects, and ``POST /stowage/faults/restore``
  with ``{"seconds": 2, "bump": 0}`` goes away and comes back with that copy, as after
  ``etcdutl snapshot restore``: objects and revisions are those of the backup, and revisions
  continue from there, or from ``bump`` more.
"""

import random
import re
import time
from collections import Counter
from collections.abc import Callable

import msgspec

from simcluster.apiserver.errors import ApiError, bad_request

_REASONS = {
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class FaultRule(msgspec.Struct, forbid_unknown_fields=True):
    """A fault of the next matching requests.

    Args:
        method: HTTP method; empty for any.
        path: regular expression searched for in path and query; empty for any.
        times: the number of requests to hit.
        skip: the number of matching requests to pass first.
        delay_s: delay before the request is handled.
        status: answer with this code instead of handling the request.
        retry_after_s: ``Retry-After`` of that answer.
        is_applied: handle the request before failing it: the write happens, the answer is lost.
        is_dropped: close the connection without an answer.
        hang_s: keep the client waiting this long, then close the connection.
        name: its hits are counted under this name.
        rate: the chance that it hits a matching request.
        lasts_s: the rule is dropped after this time; 0 keeps it.
        is_cut: send a part of the answer and close the connection; a watch is cut within an event
            after some whole ones.
        repeat_rate: of a watch, the chance after each event that an earlier one is sent again.
        reorder_rate: of a watch, the chance that an event is sent after the one that follows it.
        revisions_behind: serve a list as it was that many writes ago.
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
    name: str = ""
    rate: float = 1.0
    lasts_s: float = 0.0
    is_cut: bool = False
    repeat_rate: float = 0.0
    reorder_rate: float = 0.0
    revisions_behind: int = 0

    @property
    def disturbs_answer(self) -> bool:
        """Whether the request is handled, but its answer disturbed."""
        spoils_events = self.repeat_rate > 0 or self.reorder_rate > 0
        return self.is_cut or spoils_events or self.revisions_behind > 0

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
    """The fault rules of one server, and the number of hits.

    Args:
        chance: random numbers in 0..1, for rules with a rate.
        clock: monotonic seconds, for rules that last a while.

    Attributes:
        rules: those in force.
        hits: the number of requests hit.
        hits_by_name: the same by the name of the rule.
    """

    def __init__(
        self,
        chance: Callable[[], float] = random.random,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.chance = chance
        self.rules: list[FaultRule] = []
        self.hits = 0
        self.hits_by_name: Counter[str] = Counter()
        self._clock = clock
        self._ends: dict[int, float] = {}

    def add(self, rule: FaultRule) -> None:
        """Append a rule."""
        self.rules.append(rule)
        if rule.lasts_s > 0:
            self._ends[id(rule)] = self._clock() + rule.lasts_s

    def clear(self) -> None:
        """Drop every rule."""
        self.rules.clear()
        self._ends.clear()

    def is_in_force(self, rule: FaultRule) -> bool:
        """Whether a rule was not dropped; if it was, its streams continue undisturbed."""
        self._drop_ended()
        return any(each is rule for each in self.rules)

    def take(self, method: str, path: str) -> FaultRule | None:
        """The rule that hits a request, counted as used."""
        self._drop_ended()
        for rule in self.rules:
            if not rule.matches(method, path):
                continue
            if rule.skip > 0:
                rule.skip -= 1
                continue
            if rule.rate < 1.0 and self.chance() >= rule.rate:
                continue
            rule.times -= 1
            if rule.times <= 0:
                self._drop(rule)
            self.hits += 1
            self.hits_by_name[rule.name] += 1
            return rule
        return None

    def _drop_ended(self) -> None:
        if not self._ends:
            return
        now = self._clock()
        for rule in [rule for rule in self.rules if self._ends.get(id(rule), now + 1) <= now]:
            self._drop(rule)

    def _drop(self, rule: FaultRule) -> None:
        self.rules = [each for each in self.rules if each is not rule]
        self._ends.pop(id(rule), None)


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
