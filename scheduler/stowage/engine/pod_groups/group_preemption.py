"""Workload-aware preemption: a group evicts for all of its members at once.

upstream: ``PodGroupPostFilter`` of the plugin DefaultPreemption (v1.36), behind the feature gate
WorkloadAwarePreemption. Members then do not preempt for themselves.

All pods that the group may evict are taken out of the cluster, and the group is tried. If it fits,
the victims are brought back one unit after the other, the most important first, and those stay
without which the group still fits. The rest is evicted, unless a PostFilter plugin rejects that;
the group waits for their end.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from stowage.api.events import EvictionFinished
from stowage.api.instructions import POD_GROUP, EmitEvent, EvictPod, PodReference
from stowage.api.interruptible import Interruptible
from stowage.api.status import Status, unschedulable
from stowage.engine.binding.state_machine import BindingEvent, advance_binding
from stowage.engine.pod_groups.outcome import GroupOutcome, GroupResult
from stowage.engine.pod_groups.placements import try_group
from stowage.engine.pod_groups.placing import Try, free_members, take_back
from stowage.engine.pod_groups.quorum import release_members
from stowage.engine.pod_groups.victims import VictimUnit, pods_of, victim_units
from stowage.engine.preemption import evictions
from stowage.engine.scheduling import TieBreaker
from stowage.engine.state.attempt import Attempt
from stowage.engine.state.engine_state import EngineState
from stowage.engine.state.group_evictions import GroupEviction
from stowage.framework import Framework
from stowage.queue.queue_events import FORCE_ACTIVATE
from stowage.state.pods.pod_groups import KnownGroup
from stowage.state.pods.pod_info import PodInfo

BARRED = "not eligible due to workload aware preemption enabled"
HAS_CONSTRAINTS = (
    "workload aware preemption is not supported for pod groups with scheduling constraints"
)
NOT_REGISTERED = (
    "default preemption plugin is not registered, workload aware preemption is disabled"
)
NEVER = "not eligible due to preemptionPolicy=Never."
NO_VICTIMS = "No preemption victims found for incoming preemptor"
_CLUSTER = "cluster"


class VictimsFound(msgspec.Struct, frozen=True):
    """What a group evicts, and what it gains.

    Attributes:
        victims: The pods that have to go.
        node_of: UID of a member -> the node where it goes then; surplus members may be missing.
    """

    victims: list[PodInfo]
    node_of: dict[str, str]


_WHAT_IF = Try(barred=BARRED, is_what_if=True)


def preempts_as_group(state: EngineState) -> bool:
    """Whether groups preempt instead of their members; off by default, as in kube-scheduler."""
    return state.gates.enabled("WorkloadAwarePreemption")


def preempt_for_group(
    state: EngineState, outcome: GroupOutcome, attempts: Sequence[Attempt], now: float
) -> Interruptible[None]:
    """Evict pods of lower priority if the group fits then; else say in the outcome why not.

    Args:
        state: The engine's state, without anything of the try.
        outcome: The infeasible try.
        attempts: The members.
        now: The time.
    """
    known = state.cache.pod_groups.group(attempts[0].info.group_key)
    if known is None:
        return
    found = yield from victims_of_group(state, known, attempts)
    if isinstance(found, Status):
        outcome.message += f", {found.message}"
        if found.plugin:
            outcome.rejected_elsewhere |= {found.plugin}
        return
    outcome.result = GroupResult.WAITING_ON_PREEMPTION
    outcome.nominations = found.node_of
    for victim in found.victims:
        outcome.victims.add(victim.uid)
        _evict(state, known, attempts[0].info, victim, now)
        yield


def victims_of_group(
    state: EngineState, known: KnownGroup, attempts: Sequence[Attempt]
) -> Interruptible[VictimsFound | Status]:
    """The pods that the group would evict; the cluster stays as it is.

    Returns:
        Why the group may not preempt, or does not fit even without all that it may evict. The
        status names the plugin that rejects the victims, if one does.
    """
    framework = state.frameworks[attempts[0].info.scheduler_name]
    refusal = _refusal(framework, known, attempts)
    if refusal:
        return unschedulable(refusal)
    units = victim_units(state, known.group.priority)
    if not units:
        return unschedulable(NO_VICTIMS)
    found = yield from _find_victims(state, attempts, units)
    if isinstance(found, str):
        return unschedulable(found)
    status = framework.run_pod_group_post_filter(found.victims, state.cache.snapshot())
    return found if status.is_success else status


def eviction_finished(
    state: EngineState, event: EvictionFinished, now: float
) -> Interruptible[None]:
    """A victim of a pod or of a group is being deleted, or its eviction failed."""
    eviction = state.group_evictions.end(event.victim.uid, event.preemptor_uid)
    if eviction is None:
        evictions.eviction_finished(state, event, now)
    elif event.error:
        text = f"not evicted for pod group {eviction.group_key}: {event.error}"
        state.outbox.report(f"Pod {event.victim.key}", text)
        victim = state.cache.get_pod(event.victim.uid)
        if victim is not None:
            state.cache.forget_eviction(victim)
        yield from release_members(state, eviction.group_key, FORCE_ACTIVATE, now)
    elif event.was_deleted:
        _emit_preempted_event(state, eviction, event.victim)


def _refusal(framework: Framework, known: KnownGroup, attempts: Sequence[Attempt]) -> str:
    """Why the group may not preempt; empty if it may."""
    if not framework.lets_groups_preempt:
        return NOT_REGISTERED
    if known.group.topology_key:
        return HAS_CONSTRAINTS
    if any(each.info.pod_class.preemption_policy == "Never" for each in attempts):
        return NEVER
    return ""


def _find_victims(
    state: EngineState, attempts: Sequence[Attempt], units: Sequence[VictimUnit]
) -> Interruptible[VictimsFound | str]:
    """The pods without which the group fits, as few as the order of the units allows.

    Returns:
        Why the group does not fit even without all of them.
    """
    spares_many = _spares_many(state, attempts, units)
    out: dict[str, PodInfo] = {}
    try:
        yield from _take_out(state, out, units)
        node_of = yield from _try_without(state, attempts)
        if isinstance(node_of, str):
            yield from _bring_back(state, out, units)
            return node_of
        first, size = 0, 1
        while first < len(units):
            end = min(first + size, len(units))
            spared, nodes = yield from _spare(state, attempts, out, units[first:end])
            node_of = nodes or node_of
            is_whole = spared == end - first
            # The unit after those that are spared is a victim.
            first += spared + (not is_whole)
            size = 2 * size if is_whole and spares_many else 1
        return VictimsFound(list(out.values()), node_of)
    finally:
        for pod in out.values():
            state.cache.bring_back(pod)


def _spares_many(
    state: EngineState, attempts: Sequence[Attempt], units: Sequence[VictimUnit]
) -> bool:
    """Whether the group fits beside each of some units one after the other, if beside them all.

    That is so if its members are alike, need no volumes and devices, no victim is one of them, and
    more pods only make nodes reject members. Then it does not matter which members go where.
    """
    info, snapshot = attempts[0].info, state.cache.snapshot()
    framework = state.frameworks[info.scheduler_name]
    for each in attempts:
        is_alike = each.info.pod_class is info.pod_class
        if not (is_alike and framework.refuses_like_its_class(each.info, snapshot)):
            return False
    if any(pod.group_key == info.group_key for pod in pods_of(units)):
        return False
    return framework.rejects_beside_more_pods(state.new_cycle_state(info.uid), info, snapshot)


def _spare(
    state: EngineState,
    attempts: Sequence[Attempt],
    out: dict[str, PodInfo],
    units: Sequence[VictimUnit],
) -> Interruptible[tuple[int, dict[str, str]]]:
    """Bring back units, the first ones, beside which the group still fits.

    Args:
        state: The engine's state.
        attempts: The members.
        out: The pods that are taken out, by UID.
        units: They are taken out.

    Returns:
        The number of units that are back, and where the members go then, if any is.
    """
    node_of = yield from _try_beside(state, attempts, out, units)
    if node_of is not None:
        return len(units), node_of
    back, end = 0, len(units)
    found: dict[str, str] = {}
    while end - back > 1:  # the group fits beside the first `back` units, not the first `end`
        middle = (back + end) // 2
        node_of = yield from _try_beside(state, attempts, out, units[back:middle])
        if node_of is None:
            end = middle
        else:
            back, found = middle, node_of
    return back, found


def _try_beside(
    state: EngineState,
    attempts: Sequence[Attempt],
    out: dict[str, PodInfo],
    units: Sequence[VictimUnit],
) -> Interruptible[dict[str, str] | None]:
    """Bring units back; take them out again, and return None, if the group does not fit then."""
    yield from _bring_back(state, out, units)
    node_of = yield from _try_without(state, attempts)
    if not isinstance(node_of, str):
        return node_of
    yield from _take_out(state, out, units)
    return None


def _take_out(
    state: EngineState, out: dict[str, PodInfo], units: Sequence[VictimUnit]
) -> Interruptible[None]:
    for pod in pods_of(units):
        state.cache.take_out(pod)
        out[pod.uid] = pod
        yield


def _bring_back(
    state: EngineState, out: dict[str, PodInfo], units: Sequence[VictimUnit]
) -> Interruptible[None]:
    for pod in pods_of(units):
        state.cache.bring_back(out.pop(pod.uid))
        yield


def _try_without(
    state: EngineState, attempts: Sequence[Attempt]
) -> Interruptible[dict[str, str] | str]:
    """Try the group and take it back; the first of equally good nodes is taken.

    Returns:
        The members' nodes by UID, or why the group does not fit.
    """
    ties, state.ties = state.ties, TieBreaker(lambda _num_ties: 0)
    try:
        outcome = yield from try_group(state, attempts, _WHAT_IF)
        yield from take_back(state, outcome)
        node_of = {
            member.attempt.info.uid: member.cycle.node_name
            for member in outcome.members
            if member.cycle is not None
        }
        yield from free_members(outcome)
    finally:
        state.ties = ties
    return node_of if outcome.result is GroupResult.SCHEDULED else outcome.message


def _evict(
    state: EngineState, known: KnownGroup, member: PodInfo, victim: PodInfo, now: float
) -> None:
    """Evict a victim, unless it is terminating, or its eviction is under way."""
    metadata = known.group.metadata
    group = PodReference(metadata.namespace, metadata.name, metadata.uid)
    eviction = GroupEviction(group, member.group_key, member.scheduler_name)
    if victim.terminating or victim.uid in state.group_evictions:
        return
    if advance_binding(state, victim.uid, BindingEvent.PREEMPTED, now):
        _emit_preempted_event(state, eviction, victim.reference)
        return
    state.cache.note_eviction(victim)
    state.group_evictions.start(victim.uid, eviction)
    state.outbox.emit(
        EvictPod(
            victim.reference,
            group,
            member.scheduler_name,
            victim.generation,
            preemptor_kind=POD_GROUP,
        )
    )


def _emit_preempted_event(
    state: EngineState, eviction: GroupEviction, victim: PodReference
) -> None:
    known = state.cache.get_pod(victim.uid) or state.queue.latest(victim.uid)
    state.outbox.emit(
        EmitEvent(
            pod=victim,
            event_type="Normal",
            reason="Preempted",
            action="Preempting",
            note=f"Preempted by podgroup {eviction.group.uid} on node {_CLUSTER}",
            scheduler_name=eviction.scheduler_name,
            related=eviction.group,
            resource_version="" if known is None else known.resource_version,
            related_kind=POD_GROUP,
        )
    )
