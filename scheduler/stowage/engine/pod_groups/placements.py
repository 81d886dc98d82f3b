"""Trying a pod group in the topology domains that may be the best for it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from stowage.api.interruptible import Interruptible
from stowage.api.objects.pod_groups import CORE_GROUPS
from stowage.engine.pod_groups.outcome import GroupOutcome, GroupResult
from stowage.engine.pod_groups.placement_order import PlacementOrder
from stowage.engine.pod_groups.placing import Try, free_members, place_again, take_back, try_members
from stowage.engine.pod_groups.topology import (
    DomainUnknown,
    TopologyDomains,
    is_topology_aware,
    topology_domains,
    topology_key,
)
from stowage.engine.preparation import has_to_prepare, preparing_steps
from stowage.engine.state.attempt import Attempt
from stowage.engine.state.engine_state import EngineState
from stowage.framework import PlacedMembers, PluginFailed, Prospects
from stowage.state.pods.pod_groups import KnownGroup
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import Snapshot

NO_PLACEMENTS = "no feasible placements found"
BARRED = "not eligible due to placement-based pod group scheduling limitation"


def as_constrained(state: EngineState, known: KnownGroup | None, how: Try) -> Try:
    """`how`, but no member may preempt if the group has constraints.

    With the feature gate on, this holds for constraints without a topology key, too.
    """
    is_barred = bool(topology_key(state, known))
    if known is not None and is_topology_aware(state):
        is_barred = known.group.spec.scheduling_constraints is not None
    return replace(how, barred=BARRED) if is_barred else how


def try_group(
    state: EngineState, attempts: Sequence[Attempt], how: Try
) -> Interruptible[GroupOutcome]:
    """Try the group, in each placement if it has a topology key.

    ``podGroupSchedulingPlacementAlgorithm`` of v1.36, which also words the result of groups without
    a key if the feature gate is on. Then a missing group is an error.
    """
    info = attempts[0].info
    known = state.cache.pod_groups.group(info.group_key)
    is_on = is_topology_aware(state)
    if is_on and known is None and info.group_source == CORE_GROUPS:
        text = f'podgroup.scheduling.k8s.io "{info.group}" not found'
        return GroupOutcome(GroupResult.ERROR, text, [])
    how = as_constrained(state, known, how)
    key = topology_key(state, known)
    if not key:
        outcome = yield from try_members(state, attempts, how)
        return _worded(outcome, 1) if is_on else outcome
    try:
        domains = topology_domains(state, info.group_key, key)
    except DomainUnknown as unknown:
        text = f"cannot determine domain for already scheduled pods: {unknown}"
        return GroupOutcome(GroupResult.ERROR, text, [])
    if not domains.values:
        return GroupOutcome(GroupResult.UNSCHEDULABLE, NO_PLACEMENTS, [])
    return (yield from _try_placements(state, attempts, domains, how))


def _try_placements(
    state: EngineState, attempts: Sequence[Attempt], domains: TopologyDomains, how: Try
) -> Interruptible[GroupOutcome]:
    """Try the group in the domains that may be the best ones, and place it in the best."""
    if has_to_prepare(attempts[0].info):
        yield from preparing_steps(state, attempts[0].info)
    try:
        order = _order(state, attempts, domains)
    except PluginFailed as failure:
        return GroupOutcome(GroupResult.ERROR, failure.status.message, [])
    first: GroupOutcome | None = None
    feasible: list[tuple[int, GroupOutcome]] = []
    rejected_by: frozenset[str] = frozenset()
    following = order.take()
    while following is not None:
        domain = following
        names = domains.node_names(domain, state.cache.snapshot())
        outcome = yield from try_members(state, attempts, replace(how, node_names=names))
        if outcome.result is GroupResult.ERROR:
            return outcome
        if outcome.is_feasible:
            feasible.append((domain, outcome))
            order.note_feasible(domain, outcome.num_placed)
        following = order.take()
        if following is None and len(feasible) == 1 and outcome.is_feasible:
            return outcome
        rejected_by |= outcome.rejecting_plugins
        yield from take_back(state, outcome)
        first = first or outcome
        if outcome is not first and not outcome.is_feasible:
            yield from free_members(outcome)
    if not feasible:
        assert first is not None  # noqa: S101 - there is at least one placement
        first.rejected_elsewhere = rejected_by | order.ruled_out_by
        return _worded(first, len(domains.values))
    return (yield from _best(state, domains, feasible))


def _order(
    state: EngineState, attempts: Sequence[Attempt], domains: TopologyDomains
) -> PlacementOrder:
    """The order in which the domains are tried.

    Raises:
        PluginFailed: A plugin that scores placements raised.
    """
    members = tuple(each.info for each in attempts)
    num_scheduled = state.cache.pod_groups.members(members[0].group_key).num_scheduled
    prospects = Prospects(domains.rows, domains.starts, members, num_scheduled)
    framework = state.frameworks[members[0].scheduler_name]
    return PlacementOrder(
        framework.placement_outlook(
            state.new_cycle_state(members[0].uid), state.cache.snapshot(), prospects
        ),
        len(domains.values),
        state.ties,
        breaks_ties=framework.placements.breaks_ties,
    )


def _best(
    state: EngineState, domains: TopologyDomains, feasible: Sequence[tuple[int, GroupOutcome]]
) -> Interruptible[GroupOutcome]:
    """Place the members again in the best placement."""
    chosen = 0
    if len(feasible) > 1:
        snapshot = state.cache.snapshot()
        info = feasible[0][1].members[0].attempt.info
        framework = state.frameworks[info.scheduler_name]
        num_scheduled = state.cache.pod_groups.members(info.group_key).num_scheduled
        placements = [
            PlacedMembers(domains.rows_of(domain), _placed(snapshot, outcome), num_scheduled)
            for domain, outcome in feasible
        ]
        try:
            best = framework.placements.best(snapshot, placements)
        except PluginFailed as failure:
            return GroupOutcome(GroupResult.ERROR, failure.status.message, [])
        chosen = best[state.ties(len(best)) if len(best) > 1 else 0]
    outcome = feasible[chosen][1]
    for _, other in feasible:
        if other is not outcome:
            yield from free_members(other)
    yield from place_again(state, outcome)
    return outcome


def _placed(snapshot: Snapshot, outcome: GroupOutcome) -> tuple[tuple[PodInfo, int], ...]:
    """The members on nodes, each with its row."""
    return tuple(
        (member.attempt.info, row)
        for member in outcome.members
        if member.cycle is not None and (row := snapshot.row_of(member.cycle.node_name)) is not None
    )


def _worded(outcome: GroupOutcome, num_placements: int) -> GroupOutcome:
    """The outcome with the number of placements in its message, if none is feasible."""
    if outcome.result is GroupResult.UNSCHEDULABLE:
        outcome.message = (
            f"0/{num_placements} placements are available, "
            f"first placement status: {outcome.message}"
        )
    return outcome
