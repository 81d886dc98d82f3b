"""The simulation finds each fault that is planted in the scheduler, so every check can fail."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import Any

import aiohttp
import pytest
from msgspec.structs import replace

from stowage.api.cluster_events import ActionType, EventResource
from stowage.api.config.extenders import Extenders
from stowage.api.events import BindFailed
from stowage.api.status import SUCCESS, WAIT
from stowage.engine import schedule_one
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
from stowage.operator.writers.binder import Binder
from stowage.operator.writers.event_recorder import EventRecorder
from stowage.plugins.scheduling_gates import SchedulingGates
from stowage.plugins.taint_toleration import TaintToleration
from stowage.plugins.volumes.binding import VolumeBinding
from stowage.plugins.volumes.limits import NodeVolumeLimits
from stowage.queue.scheduling_queue import SchedulingQueue
from stowage.state.cache import ClusterCache
from stowage.state.storage import updater as storage_updater
from tests.simulation.plan import MANY_EVENTS, Emphasis
from tests.simulation.planted import PlantedFault, assert_found, does_not_register, returns

_USUAL = Emphasis()
_LONG = aiohttp.ClientTimeout(total=300.0)
_VOLUMES = Emphasis(often=frozenset(["create_pod_with_claim"]))
_FUTURE = "2026-01-01T01:00:00Z"
"""Later than any creation date unless the server's clock has jumped."""


def _fails_on_lost_answer(_usual: Any) -> Any:
    async def settle(self: Any, instruction: Any, error: Any) -> BindFailed:
        return BindFailed(instruction.pod.uid, instruction.node_name, str(error))

    return settle


def _fails_on_lost_answer_of_extender(_usual: Any) -> Any:
    async def settle(self: Any, instruction: Any, error: Any) -> BindFailed:
        uid, node_name = instruction.pod.uid, instruction.node_name
        return BindFailed(uid, node_name, str(error), by_extender=True)

    return settle


def _emits_twice(usual: Any) -> Any:
    def emit(self: Any, instruction: Any) -> None:
        usual(self, instruction)
        usual(self, instruction)

    return emit


def _overlooks_some_pods(usual: Any) -> Any:
    def add_seen(self: Any, found: Any, events: list[Any]) -> None:
        if self.kind != "Pod" or not found.metadata.uid.endswith("7"):
            usual(self, found, events)

    return add_seen


def _ignores_failing_extenders(_usual: Any) -> Any:
    async def filter_or_ignore(self: Any, extender: Any, opinion: Any, _pod: Any) -> None:
        with suppress(ExtenderError):
            await self._filter(extender, opinion)

    return filter_or_ignore


def _evicts_without_review(usual: Any) -> Any:
    async def ask(self: Any, extender: Any, pod: Any, candidates: Any, known: Any) -> Any:
        try:
            return await usual(self, extender, pod, candidates, known)
        except ExtenderError:
            return candidates

    return ask


def _hides_failed_evaluations(_usual: Any) -> Any:
    async def evaluate(self: Any, instruction: Any) -> None:
        answer = await self._evaluator.evaluate(instruction)
        if not answer.error:
            self._inbox.put(answer)

    return evaluate


def _skips_pods_of_the_future(usual: Any) -> Any:
    def skip(state: Any, info: Any) -> bool:
        if (info.creation_timestamp or "") > _FUTURE:
            state.queue.done(info.uid)
            return True
        return bool(usual(state, info))

    return skip


def _trusts_dates_of_lease(_usual: Any) -> Any:
    def taken_until(self: Any) -> float:
        spec = self._lease.get("spec", {})
        texts = spec.get("renewTime", "2026-01-01T00:00:00Z"), self._clock.timestamp_micro()
        renewed, now = (datetime.fromisoformat(text).timestamp() for text in texts)
        left_s = renewed + spec.get("leaseDurationSeconds", 15) - now
        return float(self._clock.monotonic() + left_s)

    return taken_until


def _holds_lease_too_long(_usual: Any) -> Any:
    def holds_lease(self: Any) -> bool:
        renewed_at = self._renewed_at
        return renewed_at is not None and self._clock.monotonic() < renewed_at + 25.0

    return holds_lease


def _drops_overtaken_events(_usual: Any) -> Any:
    def is_new(self: Any, metadata: Any) -> bool:
        version, newest = metadata.resource_version, self._resource_version
        return parse_resource_version(version) >= parse_resource_version(newest)

    return is_new


def _drops_unschedulable_pods(_usual: Any) -> Any:
    def add_unschedulable(self: Any, queued: Any, *_arguments: Any, **_options: Any) -> None:
        self.done(queued.uid)

    return add_unschedulable


def _reads_labels_once(usual: Any) -> Any:
    def update_namespace(self: Any, namespace: Any) -> bool:
        is_known = namespace.metadata.name in self._state.namespaces
        return False if is_known else bool(usual(self, namespace))

    return update_namespace


def _reads_taints_once(usual: Any) -> Any:
    def update_node(self: Any, node: Any) -> Any:
        columns = self._state.columns
        row = columns.row_of(node.metadata.name)
        known = None if row is None else columns.nodes[row]
        if known is not None:
            node = replace(node, spec=replace(node.spec, taints=known.spec.taints))
        return usual(self, node)

    return update_node


PLANTED = {
    "a binding with a lost answer is treated as failed": PlantedFault(
        Binder,
        "_settle",
        _fails_on_lost_answer,
        Emphasis({"answer_lost": 0.3, "stalled": 0.3}, frozenset(["create_burst"])),
        "overcommits",
        first_seed=23,
    ),
    "a replica writes without holding the lease": PlantedFault(
        LeaderElector,
        "may_write",
        returns(True),
        Emphasis(often=frozenset(["stop", "create_burst", "delete_many"])),
        " led",
    ),
    "a leader writes after its lease has expired": PlantedFault(
        LeaderElector,
        "_holds_lease",
        _holds_lease_too_long,
        Emphasis({"error": 0.3, "lost": 0.2}, frozenset(["stop_leader_past_its_lease"])),
        "after its lease",
    ),
    "a list does not remove deleted objects from the cache": PlantedFault(
        Reflector,
        "_events_of_vanished",
        returns([]),
        _USUAL,
        "which is not there",
        first_seed=9,
    ),
    "a stale list is accepted": PlantedFault(
        Reflector,
        "_check_age",
        returns(None),
        Emphasis(
            {"stale": 0.9, "stalled": 0.3},
            frozenset(["retire", "restart_server_without_history", "create_burst", "delete_many"]),
            num_events=MANY_EVENTS,
        ),
        "overcommits",
        first_seed=34,
    ),
    "a watch event that arrives out of order is dropped": PlantedFault(
        Reflector,
        "_is_new",
        _drops_overtaken_events,
        Emphasis({"reordered": 0.3}),
        "the engine",
    ),
    "an unschedulable pod is dropped": PlantedFault(
        SchedulingQueue,
        "add_unschedulable",
        _drops_unschedulable_pods,
        _USUAL,
        "although it fits on",
    ),
    "a scheduling gate is ignored": PlantedFault(
        SchedulingGates, "pre_enqueue", returns(SUCCESS), _USUAL, "behind its gate"
    ),
    "a pod is bound before its volumes are": PlantedFault(
        VolumeBinding,
        "pre_bind_progress",
        returns(PreBindProgress(SUCCESS)),
        _VOLUMES,
        "before its claim",
    ),
    "a pod waits for its volumes forever": PlantedFault(
        VolumeBinding,
        "pre_bind_progress",
        returns(PreBindProgress(WAIT)),
        _VOLUMES,
        "still waiting for volumes",
    ),
    "assumed volumes are not restored": PlantedFault(
        ClusterCache,
        "forget_storage",
        returns(None),
        _VOLUMES,
        "assumed for pod",
        first_seed=2,
    ),
    "a node takes any number of volumes": PlantedFault(
        NodeVolumeLimits,
        "filter",
        returns(ACCEPT_ALL),
        _VOLUMES,
        "of at most",
    ),
    "some events of assigned pods are dropped": PlantedFault(
        Reflector,
        "_add_seen",
        _overlooks_some_pods,
        _USUAL,
        "still not confirmed",
        first_seed=1,
    ),
    "a valid change of the configuration is ignored": PlantedFault(
        LiveConfiguration,
        "_take_valid",
        returns(None),
        _USUAL,
        " runs ",
        first_seed=2,
    ),
    "an outdated change of the configuration is applied": PlantedFault(
        LiveConfiguration,
        "_is_overtaken",
        returns(False),
        Emphasis({"replayed": 0.5}, frozenset(["edit_configuration"])),
        " runs ",
        first_seed=9,
    ),
    "a failing extender is ignored": PlantedFault(
        ExtenderEvaluator,
        "_filter_or_ignore",
        _ignores_failing_extenders,
        Emphasis({"extender_error": 0.4, "extender_lost": 0.3}, extenders=("picky",)),
        "which http://picky refuses",
    ),
    "victims are evicted although the review by an extender failed": PlantedFault(
        VictimReviewer,
        "_ask",
        _evicts_without_review,
        Emphasis({"extender_error": 0.4}, frozenset(["create_burst"]), ("guard",)),
        "although http://guard spares it",
    ),
    "the extender that binds is bypassed": PlantedFault(
        Extenders,
        "binder_of",
        returns(None),
        Emphasis(extenders=("binder",)),
        "bypassing http://binder",
    ),
    "an extender binding with a lost answer is treated as failed": PlantedFault(
        ExtenderBinder,
        "_settle",
        _fails_on_lost_answer_of_extender,
        Emphasis({"extender_torn": 0.4, "stalled": 0.3}, frozenset(["create_burst"]), ("binder",)),
        "overcommits",
    ),
    "the engine is not told that an evaluation by extenders failed": PlantedFault(
        ExtenderDispatcher,
        "_consult",
        _hides_failed_evaluations,
        Emphasis({"extender_failed": 0.3}, extenders=("picky",)),
        "still with extenders",
        first_seed=6,
    ),
    "an attached volume without a pod does not count against the limit": PlantedFault(
        storage_updater, "attached_volume", returns(None), _USUAL, "no room for its volume"
    ),
    "a detached volume requeues no pod": PlantedFault(
        NodeVolumeLimits,
        "events_to_register",
        does_not_register(EventResource.VOLUME_ATTACHMENT, ActionType.DELETE),
        _USUAL,
        "sent after a detachment",
    ),
    "a candidate compares lease timestamps with its own clock": PlantedFault(
        LeaderElector,
        "_taken_until",
        _trusts_dates_of_lease,
        Emphasis(often=frozenset(["jump_all_clocks"])),
        " led",
    ),
    "a pod with a creation timestamp in the future is skipped": PlantedFault(
        schedule_one,
        "skip_pod_schedule",
        _skips_pods_of_the_future,
        Emphasis(often=frozenset(["jump_server_clock"])),
        "sent after the faults",
        first_seed=1,
    ),
    "a removed taint requeues no pod": PlantedFault(
        TaintToleration,
        "events_to_register",
        does_not_register(EventResource.NODE, ActionType.UPDATE_NODE_TAINT),
        Emphasis(often=frozenset(["taint_or_untaint"]), num_events=MANY_EVENTS),
        "although it fits on",
        first_seed=124,
    ),
    "changes of namespace labels are ignored": PlantedFault(
        ClusterCache,
        "update_namespace",
        _reads_labels_once,
        _USUAL,
        "the engine has labels",
        first_seed=18,
    ),
    "changes of node taints are ignored": PlantedFault(
        ClusterCache,
        "update_node",
        _reads_taints_once,
        _USUAL,
        "the engine has node",
    ),
    "every Event is emitted twice": PlantedFault(
        EventRecorder, "emit", _emits_twice, _USUAL, "wrote Scheduled"
    ),
    "a candidate checks the lease too rarely": PlantedFault(
        LeaderElector,
        "_candidate_pause_s",
        returns(9.0),
        _USUAL,
        "sent after the leader was killed",
    ),
    "the request timeout is five minutes": PlantedFault(
        Timeouts,
        "request_timeout",
        lambda _usual: property(lambda _self: _LONG),
        Emphasis({"answer_lost": 0.3}, frozenset(["create_burst"])),
        "although it fits on",
        first_seed=27,
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found(name: str) -> None:
    assert_found(PLANTED[name])
