"""The engine's state for people: times of day where the engine has monotonic seconds."""

from __future__ import annotations

from typing import Any

from stowage.engine import Engine
from stowage.operator.clock import Clock

TIMES = ("queued_at", "initial_attempt_at")


def dump_for_people(engine: Engine, clock: Clock) -> dict[str, Any]:
    """The state as plain data; times of waiting pods as in ``metav1.MicroTime``."""
    state = engine.dump()
    queue = state.get("queue", {})
    time_of_day = clock.times_of_day()
    for pod in (pod for pods in queue.values() for pod in pods):
        for name in TIMES:
            if pod[name] is not None:
                pod[name] = time_of_day(pod[name])
    return state
