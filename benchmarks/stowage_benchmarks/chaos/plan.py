"""The fault plan of `stowage bench chaos`, drawn from a seed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, TypeAlias

import msgspec

Rule: TypeAlias = dict[str, Any]

API_FAULT = "api"
KILL_LEADER = "leader killed"
STOP_LEADER = "leader stopped (SIGSTOP)"
RETIRE_LEADER = "leader told to end (SIGTERM)"
KILL_STANDBY = "standby killed"
AWAY = "server away"
AWAY_LONG = "server away longer than a lease"
AWAY_IN_BINDING = "server away during a binding"
RESTART_FORGETTING = "server restarted without its watch history"
DROP_WATCHES = "all watches ended"
FORGET_HISTORY = "watch history lost (410)"
EDIT_CONFIG = "configuration edited"
BREAK_CONFIG = "configuration broken and mended"
CYCLE_NODE = "node removed and added again"
JUMP_CLOCK = "clock of a replica jumped"
STORE_SILENT = "store changes its leader (1 s of silence)"
RESTORE = "store restored from a backup"
RESTORE_BUMPED = "store restored with a jump of its revision"
CUT_REQUESTS = "requests of the leader do not arrive"
CUT_ANSWERS = "answers to the leader do not arrive"
FILES_FULL = "no room for files of the leader (RLIMIT_FSIZE)"
MEMORY_FULL = "no more memory for the leader (RLIMIT_AS)"
KILL_IN_PEACE = "leader killed, nothing else wrong"
RETIRE_IN_PEACE = "leader told to end, nothing else wrong"

#: Kind -> average seconds between two faults.
_INTERVALS_S = {
    KILL_LEADER: 60.0,
    STOP_LEADER: 90.0,
    RETIRE_LEADER: 120.0,
    KILL_STANDBY: 150.0,
    AWAY: 75.0,
    AWAY_LONG: 300.0,
    AWAY_IN_BINDING: 100.0,
    RESTART_FORGETTING: 150.0,
    DROP_WATCHES: 25.0,
    FORGET_HISTORY: 45.0,
    EDIT_CONFIG: 20.0,
    BREAK_CONFIG: 150.0,
    CYCLE_NODE: 4.0,
    JUMP_CLOCK: 20.0,
    STORE_SILENT: 45.0,
    RESTORE: 180.0,
    RESTORE_BUMPED: 300.0,
    CUT_REQUESTS: 120.0,
    CUT_ANSWERS: 120.0,
    FILES_FULL: 100.0,
    MEMORY_FULL: 150.0,
}
#: The same for the faults at the end, which run without any other fault.
_PEACEFUL_INTERVALS_S = {KILL_IN_PEACE: 300.0, RETIRE_IN_PEACE: 900.0}
_API_FAULT_EVERY_S = 1.5
_LISTS = r"^(?!.*watch=)[^?]*/(pods|nodes|namespaces|services|replicasets|[a-z]+)(\?|$)"

_REFUSALS: dict[str, Rule] = {
    "429": {"status": 429, "retry_after_s": 1},
    "500": {"status": 500},
    "503": {"status": 503},
    "504": {"status": 504},
    "reset": {"is_dropped": True},
}
_SLOW: dict[str, Rule] = {"delayed": {"delay_s": 1.0}}
_CUT: dict[str, Rule] = {"cut in mid-answer": {"is_cut": True}}
_LOST: dict[str, Rule] = {
    "applied, answer lost": {"is_applied": True, "is_dropped": True},
    "applied, answered 504": {"is_applied": True, "status": 504},
    "applied, never answered": {"is_applied": True, "hang_s": 5.0},
}
_CONFLICT: dict[str, Rule] = {"409": {"status": 409}}
_GONE: dict[str, Rule] = {"410": {"status": 410}}
_WRITE_FAULTS = {**_REFUSALS, **_SLOW, **_CUT, **_LOST, **_CONFLICT}

LIST, WATCH = "list", "watch"
#: Kind of request -> (what a rule matches, the faults it can have).
REQUESTS: dict[str, tuple[Rule, dict[str, Rule]]] = {
    "binding": ({"method": "POST", "path": "/binding$"}, _WRITE_FAULTS),
    "pod status": ({"method": "PATCH", "path": "/pods/[^/]+/status"}, _WRITE_FAULTS),
    "eviction": ({"method": "DELETE", "path": "/pods/"}, _WRITE_FAULTS),
    "event": ({"method": "POST", "path": "/events"}, _WRITE_FAULTS),
    "lease": ({"path": "/leases"}, {**_REFUSALS, **_SLOW, **_LOST}),
    "read of a pod": ({"method": "GET", "path": "/pods/[^/?]+$"}, {**_REFUSALS, **_SLOW, **_CUT}),
    LIST: (
        {"method": "GET", "path": _LISTS},
        {
            **_REFUSALS,
            **_SLOW,
            **_CUT,
            **_GONE,
            "older state": {"revisions_behind": 300},
        },
    ),
    WATCH: (
        {"method": "GET", "path": "watch="},
        {
            **_REFUSALS,
            **_GONE,
            "cut in mid-line": {"is_cut": True},
            "stale and duplicated events": {"repeat_rate": 0.2},
            "reordered events": {"reorder_rate": 0.2},
        },
    ),
    "any request": ({"path": ""}, {**_REFUSALS, **_SLOW}),
}
#: The same for the requests about claims for devices.
CLAIM_REQUESTS: dict[str, tuple[Rule, dict[str, Rule]]] = {
    "claim": ({"method": "PATCH", "path": "/resourceclaims/"}, _WRITE_FAULTS),
    "read of a claim": (
        {"method": "GET", "path": "/resourceclaims/[^/?]+$"},
        {**_REFUSALS, **_SLOW, **_CUT},
    ),
}
#: The same for the requests about pod groups.
GANG_REQUESTS: dict[str, tuple[Rule, dict[str, Rule]]] = {
    "pod group status": ({"method": "PATCH", "path": "/podgroups/"}, _WRITE_FAULTS),
}


@dataclass(frozen=True, slots=True)
class Step:
    """One fault.

    Attributes:
        at_s: Seconds after the fault phase begins.
        kind: Which kind of fault.
        seconds: Duration, where the kind has one.
        number: Chooses one of several targets, such as nodes.
        rule: Of an API fault, as `FaultRule` in JSON.
        request: The kind of request that the API fault applies to.
    """

    at_s: float
    kind: str
    seconds: float = 0.0
    number: int = 0
    rule: Rule | None = None
    request: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """All faults of a run, in order.

    Attributes:
        steps: The last ones run one after the other, without any other fault.
    """

    duration_s: float
    steps: tuple[Step, ...]

    @property
    def in_storm(self) -> tuple[Step, ...]:
        """Faults with a time of their own."""
        return tuple(step for step in self.steps if step.kind not in _PEACEFUL_INTERVALS_S)

    @property
    def in_peace(self) -> tuple[Step, ...]:
        """Faults that follow one after the other at the end."""
        return tuple(step for step in self.steps if step.kind in _PEACEFUL_INTERVALS_S)

    @property
    def rule_names(self) -> list[str]:
        """Names of the API faults."""
        return sorted({step.rule["name"] for step in self.steps if step.rule is not None})

    @property
    def digest(self) -> str:
        """A hash of the plan."""
        return hashlib.sha256(msgspec.json.encode(self.steps)).hexdigest()[:12]


def draw_plan(
    duration_s: float,
    seed: int,
    lease_s: float,
    *,
    with_claims: bool = False,
    with_gangs: bool = False,
) -> Plan:
    """Draw a plan from the seed alone, with or without faults of requests about claims and groups.

    Every kind occurs at least once, however short the run. Every fault except the final ones is
    over after `duration_s`.
    """
    random = Random(f"{seed} plan")  # noqa: S311 - to be repeatable
    requests = {
        **REQUESTS,
        **(CLAIM_REQUESTS if with_claims else {}),
        **(GANG_REQUESTS if with_gangs else {}),
    }
    steps = [*_api_faults(duration_s, random, requests), *_crashes(duration_s, random, lease_s)]
    peaceful = list(_in_peace(duration_s, random))
    return Plan(duration_s, (*sorted(steps, key=lambda step: step.at_s), *peaceful))


def _api_faults(
    duration_s: float, random: Random, requests: Mapping[str, tuple[Rule, dict[str, Rule]]]
) -> Iterator[Step]:
    """Time windows of one API fault each; windows may overlap."""
    at_s = 0.0
    deck: list[tuple[str, str]] = []
    while True:
        at_s += random.expovariate(1.0 / _API_FAULT_EVERY_S)
        if at_s >= duration_s:
            return
        if not deck:
            # Every kind of fault is drawn once before any is drawn again.
            deck = [(kind, fault) for kind, (_, faults) in requests.items() for fault in faults]
            random.shuffle(deck)
        kind, fault = deck.pop()
        found_by, faults = requests[kind]
        rule = {
            **found_by,
            **faults[fault],
            "name": f"{kind}: {fault}",
            "times": 1_000_000,
            "rate": round(random.uniform(0.05, 0.2 if kind == "any request" else 0.6), 2),
            "lasts_s": round(min(random.uniform(1.0, 8.0), duration_s - at_s) + 0.001, 3),
        }
        if "delay_s" in rule:
            rule["delay_s"] = round(random.uniform(0.2, 4.0), 2)
        if "revisions_behind" in rule:
            rule["revisions_behind"] = random.randrange(1, 600)
        yield Step(at_s, API_FAULT, rule["lasts_s"], rule=rule, request=kind)


def _in_peace(duration_s: float, random: Random) -> Iterator[Step]:
    for kind, interval_s in _PEACEFUL_INTERVALS_S.items():
        for _ in range(max(1, round(duration_s / interval_s))):
            yield Step(duration_s, kind, number=random.randrange(1_000_000))


def _crashes(duration_s: float, random: Random, lease_s: float) -> Iterator[Step]:
    longest_s = {
        KILL_LEADER: 0.0,
        STOP_LEADER: lease_s * 2,
        AWAY: lease_s / 2,
        AWAY_LONG: lease_s * 1.5,
        AWAY_IN_BINDING: lease_s / 2,
        RESTART_FORGETTING: 1.0,
        CYCLE_NODE: 5.0,
        BREAK_CONFIG: 2.0,
        STORE_SILENT: 1.0,
        RESTORE: 8.0,
        RESTORE_BUMPED: 8.0,
        CUT_REQUESTS: lease_s * 2,
        CUT_ANSWERS: lease_s * 2,
        FILES_FULL: 4.0,
        MEMORY_FULL: 4.0,
    }
    for kind, interval_s in _INTERVALS_S.items():
        for _ in range(max(1, round(duration_s / interval_s))):
            longest = longest_s.get(kind, 0.0)
            at_s = random.uniform(0.0, max(0.0, duration_s - longest))
            seconds = random.uniform(0.1, 1.0) * longest
            if kind in (STOP_LEADER, AWAY_LONG):
                # Longer than the lease in any case.
                seconds = random.uniform(lease_s * 1.1, longest)
            yield Step(at_s, kind, seconds, random.randrange(1_000_000))
