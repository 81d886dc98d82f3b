"""The state is shown with times of day, not with seconds of a monotonic clock."""

from __future__ import annotations

from msgspec.structs import replace

from stowage.api.events import PendingPodSeen
from stowage.operator.state_dump import dump_for_people
from tests.support.builders import make_pod
from tests.support.engines import default_engine
from tests.support.fake_api import FakeTime

NOON_NS = 1_764_504_000_000_000_000
"""2025-11-30, 12:00 UTC."""


def test_waiting_pods_show_times_of_day() -> None:
    engine, time = default_engine(), FakeTime(now=1000.0)
    engine.handle([PendingPodSeen(make_pod("p", gates=("wait",)))], 970.0)
    engine.handle([PendingPodSeen(make_pod("q"))], 999.5)
    clock = replace(time.clock, unix_nanoseconds=lambda: NOON_NS)
    queue = dump_for_people(engine, clock)["queue"]
    (gated,) = queue["unschedulable"]
    assert gated["queued_at"] == "2025-11-30T11:59:30.000000Z"
    assert gated["initial_attempt_at"] is None
    assert gated["last_message"] == "waiting for scheduling gates: [wait]"
    (active,) = queue["active"]
    assert active["initial_attempt_at"] == "2025-11-30T11:59:59.500000Z"


def test_the_engine_keeps_its_own_times() -> None:
    engine = default_engine()
    engine.handle([PendingPodSeen(make_pod("q"))], 5.0)
    dump_for_people(engine, FakeTime().clock)
    assert engine.dump()["queue"]["active"][0]["queued_at"] == 5.0
