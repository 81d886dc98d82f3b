"""Tries a pod group as the engine's group cycle does, and leaves the engine as it was."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec
from msgspec.structs import replace

from stowage.analysis.explained_decision import Circumstances, explain_decision
from stowage.analysis.explanation import SchedulingExplanation
from stowage.api.interruptible import finish
from stowage.api.status import Status
from stowage.engine.pod_groups import group_preemption
from stowage.engine.pod_groups.members import several_schedulers
from stowage.engine.pod_groups.outcome import GroupOutcome, GroupResult
from stowage.engine.pod_groups.placements import as_constrained, try_group
from stowage.engine.pod_groups.placing import Try, place_again, take_back, try_members
from stowage.engine.pod_groups.topology import DomainUnknown, topology_domains, topology_key
from stowage.engine.scheduling import TieBreaker
from stowage.engine.state.attempt import Attempt
from stowage.engine.state.engine_state import EngineState
from stowage.state.pods.pod_info import PodInfo


class DomainTry(msgspec.Struct, frozen=True):
    """The try in one placement.

    Attributes:
        value: The value of the topology key; empty for a group without one.
        how: The nodes, and whether members may preempt.
        outcome: The result; nothing of it is left in the cluster.
    """

    value: str
    how: Try
    outcome: GroupOutcome


class GroupTrial(msgspec.Struct, frozen=True):
    """The try of a group's pending members.

    Attributes:
        attempts: The members that PreEnqueue admits, in the order in which they are tried.
        held: The others with the rejections of PreEnqueue.
        outcome: The result; None without `attempts`.
        shown: The try in the domain that is chosen, else in the one where most members fit; None
            if no placement was tried.
        domains: The try in each topology domain; empty without a topology key.
        victims: The pods that the group would evict as a whole.
        refusal: Why the group may not preempt as a whole, or to no avail.
    """

    attempts: tuple[Attempt, ...]
    held: tuple[tuple[PodInfo, Status], ...]
    outcome: GroupOutcome | None = None
    shown: DomainTry | None = None
    domains: tuple[DomainTry, ...] = ()
    victims: tuple[PodInfo, ...] = ()
    refusal: str = ""


def try_pending_members(state: EngineState, key: str) -> GroupTrial:
    """Try the pending members of a group; of equally good nodes the first is taken.

    The members are tried by priority, then by the time when they became active, then by name:
    among members that became active together the scheduler's order is arbitrary.
    """
    attempts, held = _pending_members(state, key)
    text = several_schedulers([each.info.scheduler_name for each in attempts]) if attempts else ""
    if text:
        error = GroupOutcome(GroupResult.ERROR, text, [])
        return GroupTrial(attempts, held, error)
    if not attempts:
        return GroupTrial(attempts, held)
    with _left_as_it_was(state, attempts):
        return _try(state, key, attempts, held)


def decision_in_try(
    state: EngineState, trial: GroupTrial, shown: DomainTry, uid: str
) -> SchedulingExplanation:
    """The decision about a tried member, beside the members that were placed before it."""
    before = []
    for member in shown.outcome.members:
        if member.attempt.info.uid == uid:
            break
        before.append(replace(member))
    beside = GroupOutcome(GroupResult.UNSCHEDULABLE, "", before)
    info = next(each.info for each in trial.attempts if each.info.uid == uid)
    with _left_as_it_was(state, trial.attempts):
        finish(place_again(state, beside))
        framework = state.frameworks[info.scheduler_name]
        circumstances = replace(
            Circumstances.of(state, framework),
            node_names=shown.how.node_names,
            barred=shown.how.barred,
        )
        decision = explain_decision(framework, state.cache.snapshot(), info, circumstances)
        finish(take_back(state, beside))
    return decision


def _pending_members(
    state: EngineState, key: str
) -> tuple[tuple[Attempt, ...], tuple[tuple[PodInfo, Status], ...]]:
    attempts: list[Attempt] = []
    held: list[tuple[PodInfo, Status]] = []
    for uid in state.cache.pod_groups.members(key).unscheduled:
        queued, info = state.queue.get(uid), state.queue.latest(uid)
        if queued is None or info is None or info.terminating:
            continue
        gate = state.frameworks[info.scheduler_name].run_pre_enqueue(info)
        if gate.is_success:
            attempts.append(Attempt(queued, info, 0.0))
        else:
            held.append((info, gate))
    attempts.sort(key=_order)
    held.sort(key=lambda each: each[0].key)
    return tuple(attempts), tuple(held)


def _order(attempt: Attempt) -> tuple[int, float, str]:
    info = attempt.info
    return (-info.priority, attempt.queued.initial_attempt_at or 0.0, info.key)


def _try(
    state: EngineState,
    key: str,
    attempts: tuple[Attempt, ...],
    held: tuple[tuple[PodInfo, Status], ...],
) -> GroupTrial:
    as_group = group_preemption.preempts_as_group(state)
    known = state.cache.pod_groups.group(key)
    limits = Try(barred=group_preemption.BARRED if as_group else "")
    how = as_constrained(state, known, limits)
    outcome = finish(try_group(state, attempts, how))
    finish(take_back(state, outcome))
    domains = _try_domains(state, key, attempts, how)
    shown = _shown(outcome, domains) if domains else DomainTry("", how, outcome)
    found: group_preemption.VictimsFound | Status = group_preemption.VictimsFound([], {})
    if as_group and known is not None and outcome.result is GroupResult.UNSCHEDULABLE:
        found = finish(group_preemption.victims_of_group(state, known, attempts))
    refusal = found.message if isinstance(found, Status) else ""
    victims = [] if isinstance(found, Status) else found.victims
    return GroupTrial(
        attempts,
        held,
        outcome,
        shown if shown.outcome.members else None,
        domains,
        tuple(victims),
        refusal,
    )


def _try_domains(
    state: EngineState, key: str, attempts: Sequence[Attempt], how: Try
) -> tuple[DomainTry, ...]:
    label = topology_key(state, state.cache.pod_groups.group(key))
    if not label:
        return ()
    try:
        domains = topology_domains(state, key, label)
    except DomainUnknown:
        return ()  # the outcome of the whole try has the text
    tries = []
    for index, value in enumerate(domains.values):
        node_names = domains.node_names(index, state.cache.snapshot())
        limited = replace(how, node_names=node_names)
        outcome = finish(try_members(state, attempts, limited))
        finish(take_back(state, outcome))
        tries.append(DomainTry(value, limited, outcome))
    return tuple(tries)


def _shown(outcome: GroupOutcome, domains: Sequence[DomainTry]) -> DomainTry:
    """The domain of the chosen placement, else the first one where most members fit."""
    if outcome.is_feasible:
        nodes = {each.cycle.node_name for each in outcome.members if each.cycle is not None}
        for each in domains:
            if each.how.node_names is not None and nodes <= each.how.node_names:
                return DomainTry(each.value, each.how, outcome)
    return max(domains, key=lambda each: each.outcome.num_fitting)


@contextmanager
def _left_as_it_was(state: EngineState, attempts: Sequence[Attempt]) -> Iterator[None]:
    """Put back what a try changes besides the cluster: nominations, turns, order of members."""
    groups = state.cache.pod_groups
    waiting = list(groups.members(attempts[0].info.group_key).unscheduled)
    nominated = [
        (each.info, node)
        for each in attempts
        if (node := state.queue.nominator.node_of(each.info.uid)) is not None
    ]
    ties, state.ties = state.ties, TieBreaker(lambda _num_ties: 0)
    kept = (state.next_start, state.turns.copy(), state.last_decision)
    try:
        yield
    finally:
        state.ties = ties
        state.next_start, state.turns, state.last_decision = kept
        state.outbox.take()
        for uid in waiting:
            pod = state.queue.latest(uid)
            if pod is not None:
                groups.forget_pending(uid)
                groups.see_pending(pod)
        for info, node_name in nominated:
            state.queue.nominator.nominate(info, node_name)
