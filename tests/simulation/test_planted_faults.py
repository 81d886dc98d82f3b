"""Every audit can fail: faults planted in the scheduler are found within a few seeds."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple

import aiohttp
import pytest
from msgspec.structs import replace
from stowage.api.config.extenders import Extenders
from stowage.api.events import ActionType, BindFailed, EventResource
from stowage.api.status import SUCCESS, WAIT
from stowage.engine import schedule_one as attempts
from stowage.framework import ACCEPT_ALL, PreBindProgress
from stowage.operator.client.resource_version import parse_resource_version
from stowage.operator.client.timeouts import Timeouts
from stowage.operator.configuration.live_configuration import LiveConfiguration
from stowage.operator.extenders.binder import ExtenderBinder
from stowage.operator.extenders.client import ExtenderError
from stowage.operator.extenders.dispatcher import ExtenderDispatcher
from stowage.operator.extenders.evaluator import ExtenderEvaluator
from stowage.operator.extenders.victim_review import VictimReviewer
from stowage.operator.leader_election import LeaderElector
from stowage.operator.watch.reflector import Reflector
from stowage.operator.writers.binder import Binder, _failed
from stowage.operator.writers.event_recorder import EventRecorder
from stowage.plugins.scheduling_gates import SchedulingGates
from stowage.plugins.taint_toleration import TaintToleration
from stowage.plugins.volumes.binding import VolumeBinding
from stowage.plugins.volumes.limits import NodeVolumeLimits
from stowage.plugins.volumes.pre_bind import VolumePlan
from stowage.queue.scheduling_queue import SchedulingQueue
from stowage.state.cache import ClusterCache
from stowage.state.storage import event_handlers as storage_keeper

from tests.simulation.plan import Emphasis
from tests.simulation.run import simulate

MAX_SEEDS_TO_A_FAULT = 120

_emit = EventRecorder.emit
_add_seen = Reflector._add_seen
_ask_a_guard = VictimReviewer._ask
_namespace_seen = ClusterCache.namespace_seen
_node_seen = ClusterCache.node_seen
_skip = attempts._skip
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


async def _pass_over_a_failing_extender(
    consultant: Any, extender: Any, opinion: Any, _pod: Any
) -> None:
    with suppress(ExtenderError):
        await consultant._filter(extender, opinion)


async def _ask_a_guard_and_hope(
    reviewer: Any, extender: Any, pod: Any, candidates: Any, known: Any
) -> Any:
    try:
        return await _ask_a_guard(reviewer, extender, pod, candidates, known)
    except ExtenderError:
        return candidates


async def _take_an_extenders_silence_for_a_failure(
    _self: Any, instruction: Any, error: Any
) -> BindFailed:
    return BindFailed(instruction.pod.uid, instruction.node_name, str(error), by_extender=True)


async def _tell_nobody_that_a_consultation_failed(desk: Any, instruction: Any) -> None:
    answer = await desk._evaluator.evaluate(instruction)
    if not answer.error:
        desk._inbox.put(answer)


def _leave_pods_of_the_future(machine: Any, info: Any) -> bool:
    if (info.creation_timestamp or "") > "2026-01-01T01:00:00Z":
        machine.queue.done(info.uid)
        return True
    return _skip(machine, info)


def _believe_the_dates_of_a_lease(elector: Any) -> float:
    spec = elector._lease.get("spec", {})
    texts = spec.get("renewTime", "2026-01-01T00:00:00Z"), elector._clock.timestamp_micro()
    renewed, now = (datetime.fromisoformat(text).timestamp() for text in texts)
    left_s = renewed + spec.get("leaseDurationSeconds", 15) - now
    return float(elector._clock.monotonic() + left_s)


def _read_labels_once(cache: Any, namespace: Any) -> bool:
    is_known = namespace.metadata.name in cache._state.namespaces
    return False if is_known else _namespace_seen(cache, namespace)


def _read_taints_once(cache: Any, node: Any) -> Any:
    columns = cache._state.columns
    row = columns.row_of(node.metadata.name)
    known = None if row is None else columns.nodes[row]
    if known is not None:
        node = replace(node, spec=replace(node.spec, taints=known.spec.taints))
    return _node_seen(cache, node)


def _deaf(plugin: Any, deaf_to: EventResource, action: ActionType) -> Callable[..., Any]:
    """What a plugin waits for, without some of it."""
    hears = plugin.events_to_register
    return lambda self: tuple(
        each
        for each in hears(self)
        if each.event.resource is not deaf_to or not each.event.action & action
    )


def _always(answer: Any) -> Callable[..., Any]:
    return lambda *_arguments, **_options: answer


PLANTED = {
    "a lost answer is taken for a failure": Planted(
        Binder,
        "_settle",
        _take_a_lost_answer_for_a_failure,
        Emphasis({"answer_lost": 0.3, "stalled": 0.3}, frozenset(["create_burst"])),
        "overcommits",
        first_seed=33,
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
        first_seed=5,
    ),
    "an old list is believed": Planted(
        Reflector,
        "_check_age",
        _always(None),
        Emphasis(
            {"stale": 0.9, "stalled": 0.3},
            frozenset(["retire", "restart_server_without_history", "create_burst", "delete_many"]),
        ),
        "overcommits",
        first_seed=45,
    ),
    "an event overtaken by another is dropped": Planted(
        Reflector,
        "_is_new",
        lambda self, metadata: (
            parse_resource_version(metadata.resource_version)
            >= parse_resource_version(self._resource_version)
        ),
        Emphasis({"reordered": 0.3}),
        "the engine",
        first_seed=5,
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
    ),
    "a node takes any number of volumes": Planted(
        NodeVolumeLimits,
        "filter",
        _always(ACCEPT_ALL),
        _VOLUMES,
        "of at most",
    ),
    "some pods on nodes are never shown": Planted(
        Reflector,
        "_add_seen",
        _overlook_some,
        _USUAL,
        "still not confirmed",
    ),
    "an edit of the configuration is ignored": Planted(
        LiveConfiguration,
        "_take_valid",
        _always(None),
        _USUAL,
        " runs ",
    ),
    "an edit that comes again is put into force again": Planted(
        LiveConfiguration,
        "_is_overtaken",
        _always(False),
        Emphasis({"replayed": 0.5}, frozenset(["edit_configuration"])),
        " runs ",
        first_seed=7,
    ),
    "an extender that fails is passed over": Planted(
        ExtenderEvaluator,
        "_filter_or_ignore",
        _pass_over_a_failing_extender,
        Emphasis({"extender_error": 0.4, "extender_lost": 0.3}, extenders=("picky",)),
        "which http://picky refuses",
    ),
    "pods are evicted although nobody could be asked": Planted(
        VictimReviewer,
        "_ask",
        _ask_a_guard_and_hope,
        Emphasis({"extender_error": 0.4}, frozenset(["create_burst"]), ("guard",)),
        "whom http://guard spares",
    ),
    "the extender that binds is passed by": Planted(
        Extenders,
        "binder_of",
        _always(None),
        Emphasis(extenders=("binder",)),
        "past http://binder",
    ),
    "an extender's lost answer is taken for a failure": Planted(
        ExtenderBinder,
        "_settle",
        _take_an_extenders_silence_for_a_failure,
        Emphasis({"extender_torn": 0.4, "stalled": 0.3}, frozenset(["create_burst"]), ("binder",)),
        "overcommits",
    ),
    "nobody is told that a consultation failed": Planted(
        ExtenderDispatcher,
        "_consult",
        _tell_nobody_that_a_consultation_failed,
        Emphasis({"extender_says_no": 0.3}, extenders=("picky",)),
        "still with extenders",
        first_seed=9,
    ),
    "a volume that is merely attached takes no room": Planted(
        storage_keeper, "attached_volume", _always(None), _USUAL, "no room for its volume"
    ),
    "a volume that is detached helps nobody": Planted(
        NodeVolumeLimits,
        "events_to_register",
        _deaf(NodeVolumeLimits, EventResource.VOLUME_ATTACHMENT, ActionType.DELETE),
        _USUAL,
        "sent after a detachment",
    ),
    "a candidate believes the dates of a lease": Planted(
        LeaderElector,
        "_taken_until",
        _believe_the_dates_of_a_lease,
        Emphasis(often=frozenset(["jump_all_clocks"])),
        " led",
        first_seed=8,
    ),
    "a pod waits until the date of its creation": Planted(
        attempts,
        "_skip",
        _leave_pods_of_the_future,
        Emphasis(often=frozenset(["jump_server_clock"])),
        "sent after the storm",
        first_seed=12,
    ),
    "a taint that is gone helps nobody": Planted(
        TaintToleration,
        "events_to_register",
        _deaf(TaintToleration, EventResource.NODE, ActionType.UPDATE_NODE_TAINT),
        Emphasis(often=frozenset(["taint_or_untaint"])),
        "nothing speaks against",
        first_seed=34,
    ),
    "labels of namespaces are read once": Planted(
        ClusterCache,
        "namespace_seen",
        _read_labels_once,
        _USUAL,
        "the engine has labels",
        first_seed=6,
    ),
    "a node's taints are read once": Planted(
        ClusterCache,
        "node_seen",
        _read_taints_once,
        _USUAL,
        "the engine has node",
    ),
    "everything is said twice": Planted(
        EventRecorder, "emit", _emit_twice, _USUAL, "wrote Scheduled"
    ),
    "a candidate looks at the lease now and then": Planted(
        LeaderElector, "_candidate_pause_s", _always(9.0), _USUAL, "sent after the leader"
    ),
    "a lost answer is awaited for minutes": Planted(
        Timeouts,
        "request_timeout",
        property(lambda _self: _LONG),
        _USUAL,
        "nothing speaks against",
        first_seed=14,
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
