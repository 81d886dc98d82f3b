"""Evicting the victims of a preemption, and holding back the preemptor meanwhile.

    room found --> all victims but the last --(all answered)--> the last --(answered)--> finished
                            |                                      |                        |
                            +-------(one cannot be evicted)--------+--> failed: try again   |
                                                                                            |
                                         gate open <--(the watch shows the last one leave)--+

A victim that has no binding yet goes back to the queue at once; the others are deleted through
the API server. The preemptor is gated until the last victim is seen to be on its way out: the end
of any earlier one, or of another preemptor's, would bring it back too early, and it would preempt
once more, for nothing here tells it that room is being made already. What is known
here is lost when the process ends, and nothing depends on it: the pod's nomination and the victims'
condition are in the API server, and a new process tries the pod anew.

upstream: ``Executor.prepareCandidateAsync`` of pkg/scheduler/framework/preemption (v1.36). Unlike
there, the last victim is spared if the preemptor is gone by then, and that the API server has
answered does not open the gate as long as the watch shows the victim where it was.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial

import msgspec

from stowage.api.events import EvictionFinished
from stowage.api.instructions import (
    ClearNomination,
    EmitEvent,
    EvictPod,
    PodReference,
    PreemptionAttempted,
    PreemptionFinished,
)
from stowage.engine.binding.commitments import cancel_unbound
from stowage.engine.machine import Machine
from stowage.framework import Candidate, Framework, Preemption
from stowage.queue.queued_pod import QueueState
from stowage.state.pods.pod_info import PodInfo


class PreemptionUnderWay(msgspec.Struct):
    """Evictions that make room for a pod.

    Attributes:
        preemptor: The pod.
        scheduler_name: Its profile.
        node_name: Where room is made.
        started_at: When the first eviction began, in seconds.
        last: The victim that is evicted when all others are on their way out.
        is_at_last: Whether it is its turn, or was.
        awaited: UIDs of victims whose eviction has not been answered.
        failed: Whether a victim is still there.
        is_answered: Whether all is done but that the watch shows the last victim leave.
    """

    preemptor: PodReference
    scheduler_name: str
    node_name: str
    started_at: float
    last: PodInfo
    is_at_last: bool = False
    awaited: set[str] = msgspec.field(default_factory=set)
    failed: bool = False
    is_answered: bool = False


def gate_preemptors(machine: Machine, framework: Framework) -> None:
    """Have the framework ask here who has to wait for evictions."""
    framework.gate_by(
        partial(is_preempting, machine),
        lambda: bool(machine.preemptions),
        partial(released_preemptors, machine),
    )


def is_preempting(machine: Machine, uid: str) -> bool:
    """Whether a pod has to wait for its evictions (``IsPodRunningPreemption`` of v1.36).

    Once the last victim is gone or terminating it need not, whether or not that was answered: the
    event of its end must not find the gate closed.
    """
    under_way = machine.preemptions.get(uid)
    if under_way is None:
        return False
    if not under_way.is_at_last:
        return True
    last = machine.cache.get_pod(under_way.last.uid)
    return last is not None and not last.terminating


def released_preemptors(machine: Machine) -> Collection[str]:
    """The gated pods that need not wait for evictions any more; they leave the gate by an event."""
    machine.released = {
        uid: None
        for uid in machine.released
        if (queued := machine.queue.get(uid)) is not None
        and queued.is_gated
        and not is_preempting(machine, uid)
    }
    return machine.released.keys()


def make_room(machine: Machine, info: PodInfo, preemption: Preemption, now: float) -> None:
    """Begin what a PostFilter plugin decided; the preemptor is in flight still."""
    chosen = preemption.chosen
    if chosen is None:
        machine.emit(PreemptionAttempted(info.reference))
        if preemption.awaited:
            machine.awaiting.setdefault(preemption.awaited, {})[info.uid] = None
        return
    victims = [victim for victim in chosen.victims if not victim.terminating]
    num_victims = len(chosen.victims) if victims else 0
    machine.emit(PreemptionAttempted(info.reference, chosen.node_name, num_victims))
    if victims:
        _start(machine, info, chosen, victims, now)


def eviction_finished(machine: Machine, event: EvictionFinished, now: float) -> None:
    """A victim is on its way out, or is not: go on, or give up."""
    under_way = machine.preemptions.get(event.preemptor_uid)
    if under_way is None or event.victim.uid not in under_way.awaited:
        return
    under_way.awaited.discard(event.victim.uid)
    if event.error:
        under_way.failed = True
        text = f"not evicted for {under_way.preemptor.key}: {event.error}"
        machine.problem(f"Pod {event.victim.key}", text)
    elif event.was_deleted:
        _tell_victim(machine, under_way, event.victim)
    _go_on(machine, under_way, now)


def preemption_problems(machine: Machine) -> Iterator[str]:
    """What is inconsistent; nothing when all is well."""
    for uid, under_way in machine.preemptions.items():
        if not under_way.awaited and not _is_still_shown(machine, under_way):
            yield f"preemption for {under_way.preemptor.key} waits for nothing"
        last = under_way.last.uid
        if under_way.is_at_last and uid not in machine.last_victims.get(last, ()):
            yield f"nobody knows that preemptor {under_way.preemptor.key} waits for its last victim"
        if uid in machine.bindings and not under_way.is_at_last:
            yield f"preemptor {under_way.preemptor.key} is being bound before its last victim goes"
    for victim_uid, waiting in machine.last_victims.items():
        for uid in waiting:
            known = machine.preemptions.get(uid)
            if known is None or known.last.uid != victim_uid:
                yield f"preemptor {uid} waits for {victim_uid}, which is not its last victim"
    yield from _left_at_the_gate(machine)


def _left_at_the_gate(machine: Machine) -> Iterator[str]:
    """Gated preemptors that need not wait, and that no event would let in."""
    for queued in machine.queue.contents()[QueueState.UNSCHEDULABLE]:
        framework = machine.frameworks[queued.scheduler_name]
        if framework.released(queued.gating_plugin) is None or queued.uid in machine.released:
            continue
        if not is_preempting(machine, queued.uid):
            yield f"preemptor {queued.info.key} is gated, but waits for no eviction"


def _start(
    machine: Machine, info: PodInfo, chosen: Candidate, victims: list[PodInfo], now: float
) -> None:
    under_way = PreemptionUnderWay(
        info.reference, info.scheduler_name, chosen.node_name, now, victims[-1]
    )
    before = machine.preemptions.get(info.uid)
    if before is not None:
        # Tried before the watch showed its last victim leave: it waits for this one from now on.
        _forget_last_victim(machine, before)
    machine.preemptions[info.uid] = under_way
    machine.awaiting.setdefault(under_way.last.uid, {})[info.uid] = None
    _clear_lesser_nominations(machine, info, chosen.node_name)
    for victim in victims[:-1]:
        _evict(machine, under_way, victim, now)
    _go_on(machine, under_way, now)


def _go_on(machine: Machine, under_way: PreemptionUnderWay, now: float) -> None:
    if under_way.awaited:
        return
    if not under_way.is_at_last and not under_way.failed:
        under_way.is_at_last = True
        waiting = machine.last_victims.setdefault(under_way.last.uid, {})
        waiting[under_way.preemptor.uid] = None
        if machine.queue.get(under_way.preemptor.uid) is not None:
            _evict(machine, under_way, under_way.last, now)
    if not under_way.awaited:
        _finish(machine, under_way, now)


def _evict(machine: Machine, under_way: PreemptionUnderWay, victim: PodInfo, now: float) -> None:
    known = machine.cache.get_pod(victim.uid)
    if known is None or known.terminating:
        return
    if cancel_unbound(machine, victim.uid, now):
        _tell_victim(machine, under_way, victim.reference)
        return
    under_way.awaited.add(victim.uid)
    machine.emit(
        EvictPod(victim.reference, under_way.preemptor, under_way.scheduler_name, known.generation)
    )


def _finish(machine: Machine, under_way: PreemptionUnderWay, now: float) -> None:
    uid = under_way.preemptor.uid
    machine.emit(
        PreemptionFinished(
            under_way.preemptor, under_way.node_name, under_way.failed, now - under_way.started_at
        )
    )
    # For a preemptor that is gone the last victim was spared, and nobody waits for its end.
    under_way.is_answered = not under_way.failed and machine.queue.get(uid) is not None
    if _is_still_shown(machine, under_way):
        return
    del machine.preemptions[uid]
    _forget_last_victim(machine, under_way)
    queued = machine.queue.get(uid)
    # The last victim's end may have come and found the gate closed; no other event follows.
    was_missed = queued is not None and queued.is_gated
    if was_missed:
        machine.released[uid] = None
    if under_way.failed or (was_missed and machine.cache.get_pod(under_way.last.uid) is None):
        machine.queue.activate((uid,), now)


def _is_still_shown(machine: Machine, under_way: PreemptionUnderWay) -> bool:
    """Whether all is done, but the watch has not shown the last victim leave yet."""
    last = machine.cache.get_pod(under_way.last.uid)
    return under_way.is_answered and last is not None and not last.terminating


def _forget_last_victim(machine: Machine, under_way: PreemptionUnderWay) -> None:
    waiting = machine.last_victims.get(under_way.last.uid)
    if waiting is not None:
        waiting.pop(under_way.preemptor.uid, None)
        if not waiting:
            del machine.last_victims[under_way.last.uid]


def _clear_lesser_nominations(machine: Machine, info: PodInfo, node_name: str) -> None:
    """Pods of lower priority may not fit there any more: they had better look elsewhere."""
    for other in machine.queue.nominator.pods_on(node_name):
        if other.priority < info.priority:
            machine.queue.nominator.remove(other.uid)
            machine.emit(ClearNomination(other.reference))


def _tell_victim(machine: Machine, under_way: PreemptionUnderWay, victim: PodReference) -> None:
    preemptor = under_way.preemptor
    known = machine.cache.get_pod(victim.uid) or machine.queue.latest(victim.uid)
    waiting = machine.queue.latest(preemptor.uid)
    machine.emit(
        EmitEvent(
            pod=victim,
            event_type="Normal",
            reason="Preempted",
            action="Preempting",
            note=f"Preempted by pod {preemptor.uid} on node {under_way.node_name}",
            scheduler_name=under_way.scheduler_name,
            related=preemptor,
            resource_version="" if known is None else known.resource_version,
            related_resource_version="" if waiting is None else waiting.resource_version,
        )
    )
