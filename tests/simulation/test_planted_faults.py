"""Every audit can fail: faults planted in the scheduler are found within a few seeds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import aiohttp
import pytest

from scheduler.api.status import SUCCESS, WAIT
from scheduler.framework import ACCEPT_ALL, PreBindProgress
from scheduler.operator.binder import Binder, _failed
from scheduler.operator.event_recorder import EventRecorder
from scheduler.operator.leader_election import LeaderElector
from scheduler.operator.live_configuration import LiveConfiguration
from scheduler.operator.patience import Patience
from scheduler.operator.reflector import Reflector, as_number
from scheduler.plugins.scheduling_gates import SchedulingGates
from scheduler.plugins.volumes.binding import VolumeBinding
from scheduler.plugins.volumes.limits import NodeVolumeLimits
from scheduler.plugins.volumes.pre_bind import VolumePlan
from scheduler.queue.scheduling_queue import SchedulingQueue
from tests.simulation.plan import Emphasis
from tests.simulation.run import simulate

MAX_SEEDS_TO_A_FAULT = 120

_emit = EventRecorder.emit
_add_seen = Reflector._add_seen
_USUAL = Emphasis()
_LONG = aiohttp.ClientTimeout(total=300.0)
_VOLUMES = Emphasis(often=frozenset(["create_pod_with_claim"]))


class Planted(NamedTuple):
    """A fault in the scheduler, what brings it out, and what is found then.

    Attributes:
        first_seed: Where the search begins, to save time.
    """

    owner: Any
    attribute: str
    replacement: Any
    emphasis: Emphasis
    finding: str
    first_seed: int = 0


async def _take_a_lost_answer_for_a_failure(_self: Any, instruction: Any, error: Any) -> Any:
    return _failed(instruction, str(error))


def _emit_twice(recorder: EventRecorder, instruction: Any) -> None:
    _emit(recorder, instruction)
    _emit(recorder, instruction)


def _overlook_some(reflector: Any, found: Any, events: list[Any]) -> None:
    if reflector.kind != "Pod" or not found.metadata.uid.endswith("7"):
        _add_seen(reflector, found, events)


def _always(answer: Any) -> Callable[..., Any]:
    return lambda *_arguments, **_options: answer


PLANTED = {
    "a lost answer is taken for a failure": Planted(
        Binder,
        "_settle",
        _take_a_lost_answer_for_a_failure,
        Emphasis({"answer_lost": 0.3, "stalled": 0.3}, frozenset(["create_burst"])),
        "overcommits",
        first_seed=3,
    ),
    "a replica writes without the lease": Planted(
        LeaderElector,
        "may_write",
        _always(True),
        Emphasis(often=frozenset(["stop", "create_burst", "delete_many"])),
        " led",
    ),
    "a leader trusts its lease for longer than it lasts": Planted(
        LeaderElector,
        "_holds_lease",
        lambda self: (
            self._renewed_at is not None and self._clock.monotonic() < self._renewed_at + 25.0
        ),
        Emphasis({"error": 0.3, "lost": 0.2}, frozenset(["stop_leader_past_its_lease"])),
        "after its lease",
        first_seed=1,
    ),
    "a list does not tell what vanished": Planted(
        Reflector,
        "_events_of_vanished",
        _always([]),
        _USUAL,
        "which is not there",
        first_seed=6,
    ),
    "an old list is believed": Planted(
        Reflector,
        "_check_age",
        _always(None),
        Emphasis({"stale": 0.6}, frozenset(["restart_server_without_history", "create_burst"])),
        "overcommits",
        first_seed=8,
    ),
    "an event overtaken by another is dropped": Planted(
        Reflector,
        "_is_news",
        lambda self, metadata: (
            as_number(metadata.resource_version) >= as_number(self._resource_version)
        ),
        Emphasis({"reordered": 0.3}),
        "the engine",
    ),
    "a pod that found no node is dropped": Planted(
        SchedulingQueue,
        "add_unschedulable",
        lambda self, queued, *_arguments, **_options: self.done(queued.uid),
        _USUAL,
        "nothing speaks against",
    ),
    "a gate is no hindrance": Planted(
        SchedulingGates, "pre_enqueue", _always(SUCCESS), _USUAL, "behind its gate"
    ),
    "a pod is bound before its volumes are": Planted(
        VolumeBinding,
        "pre_bind_progress",
        _always(PreBindProgress(SUCCESS)),
        _VOLUMES,
        "before its claim",
    ),
    "a pod waits for its volumes for ever": Planted(
        VolumeBinding,
        "pre_bind_progress",
        _always(PreBindProgress(WAIT)),
        _VOLUMES,
        "still waiting for volumes",
    ),
    "what was assumed of volumes is not given back": Planted(
        VolumePlan,
        "restore",
        _always(None),
        _VOLUMES,
        "assumed for pod",
        first_seed=1,
    ),
    "a node takes any number of volumes": Planted(
        NodeVolumeLimits,
        "filter",
        _always(ACCEPT_ALL),
        _VOLUMES,
        "of at most",
        first_seed=5,
    ),
    "some pods on nodes are never shown": Planted(
        Reflector,
        "_add_seen",
        _overlook_some,
        _USUAL,
        "still not confirmed",
        first_seed=3,
    ),
    "an edit of the configuration is ignored": Planted(
        LiveConfiguration,
        "_take_valid",
        _always(None),
        _USUAL,
        " runs ",
        first_seed=5,
    ),
    "an edit that comes again is put into force again": Planted(
        LiveConfiguration,
        "_is_overtaken",
        _always(False),
        Emphasis({"replayed": 0.5}, frozenset(["edit_configuration"])),
        " runs ",
        first_seed=12,
    ),
    "everything is said twice": Planted(
        EventRecorder, "emit", _emit_twice, _USUAL, "wrote Scheduled"
    ),
    "a candidate looks at the lease now and then": Planted(
        LeaderElector, "_candidate_pause_s", _always(9.0), _USUAL, "sent after the leader"
    ),
    "a lost answer is awaited for minutes": Planted(
        Patience,
        "request_timeout",
        property(lambda _self: _LONG),
        _USUAL,
        "sent after the storm",
        13,
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fault = PLANTED[name]
    monkeypatch.setattr(fault.owner, fault.attribute, fault.replacement)
    for seed in range(fault.first_seed, fault.first_seed + MAX_SEEDS_TO_A_FAULT):
        violations = simulate(seed, fault.emphasis).violations
        if any(fault.finding in violation for violation in violations):
            return
    pytest.fail(f"{MAX_SEEDS_TO_A_FAULT} seeds did not show it")
