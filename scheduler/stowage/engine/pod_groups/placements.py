"""Trying a pod group in each of the topology domains that it may go to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from stowage.api.interruptible import Interruptible
from stowage.api.objects.pod_groups import CORE_GROUPS
from stowage.engine.pod_groups.outcome import GroupOutcome, GroupResult
from stowage.engine.pod_groups.placing import Try, free_members, place_again, take_back, try_members
from stowage.engine.state.attempt import Attempt
from stowage.engine.state.engine_state import EngineState
from stowage.framework import PlacedMembers, PluginFailed
from stowage.state.pods.pod_groups import KnownGroup

NO_PLACEMENTS = "no feasible placements found"
BARRED = "not eligible due to placement-based pod group scheduling limitation"
_GATE = "TopologyAwareWorkloadScheduling"


class DomainUnknown(Exception):  # noqa: N818 - it names the finding
    """The scheduled members of a group do not determine one topology domain."""


def topology_key(state: EngineState, known: KnownGroup | None) -> str:
    """The node label that the group's placements differ in; empty without such a constraint."""
    if known is None or state.gates.set_to(_GATE) is False:
        return ""
    return known.group.topology_key


def as_constrained(state: EngineState, known: KnownGroup | None, how: Try) -> Try:
    """`how`, but no member may preempt if the group has constraints.

    With the feature gate on, this holds for constraints without a topology key, too.
    """
    is_barred = bool(topology_key(state, known))
    if known is not None and state.gates.set_to(_GATE):
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
    is_on = state.gates.set_to(_GATE)
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
    if not domains:
        return GroupOutcome(GroupResult.UNSCHEDULABLE, NO_PLACEMENTS, [])
    return (yield from _try_placements(state, attempts, list(domains.values()), how))


def _try_placements(
    state: EngineState,
    attempts: Sequence[Attempt],
    placements: Sequence[frozenset[str]],
    how: Try,
) -> Interruptible[GroupOutcome]:
    first: GroupOutcome | None = None
    feasible: list[tuple[frozenset[str], GroupOutcome]] = []
    rejected_by: frozenset[str] = frozenset()
    for names in placements:
        outcome = yield from try_members(state, attempts, replace(how, node_names=names))
        if outcome.result is GroupResult.ERROR:
            return outcome
        if outcome.is_feasible:
            feasible.append((names, outcome))
            if len(placements) == 1:
                return outcome
        rejected_by |= outcome.rejecting_plugins
        yield from take_back(state, outcome)
        first = first or outcome
        if outcome is not first and not outcome.is_feasible:
            yield from free_members(outcome)
    if not feasible:
        assert first is not None  # noqa: S101 - there is at least one placement
        first.rejected_elsewhere = rejected_by
        return _worded(first, len(placements))
    return (yield from _best(state, feasible))


def _best(
    state: EngineState, feasible: Sequence[tuple[frozenset[str], GroupOutcome]]
) -> Interruptible[GroupOutcome]:
    """Place the members again in the best placement."""
    chosen = 0
    if len(feasible) > 1:
        snapshot = state.cache.snapshot()
        info = feasible[0][1].members[0].attempt.info
        framework = state.frameworks[info.scheduler_name]
        num_scheduled = state.cache.pod_groups.members(info.group_key).num_scheduled
        try:
            best = framework.best_placements(
                snapshot,
                [_placed(state, names, outcome, num_scheduled) for names, outcome in feasible],
            )
        except PluginFailed as failure:
            return GroupOutcome(GroupResult.ERROR, failure.status.message, [])
        chosen = best[state.ties(len(best)) if len(best) > 1 else 0]
    outcome = feasible[chosen][1]
    for _, other in feasible:
        if other is not outcome:
            yield from free_members(other)
    yield from place_again(state, outcome)
    return outcome


def _placed(
    state: EngineState, names: frozenset[str], outcome: GroupOutcome, num_scheduled: int
) -> PlacedMembers:
    row_of = state.cache.snapshot().row_of
    rows = sorted(row for name in names if (row := row_of(name)) is not None)
    placed = tuple(
        (member.attempt.info, row)
        for member in outcome.members
        if member.cycle is not None and (row := row_of(member.cycle.node_name)) is not None
    )
    return PlacedMembers(np.array(rows, dtype=np.int64), placed, num_scheduled)


def topology_domains(state: EngineState, group_key: str, key: str) -> dict[str, frozenset[str]]:
    """Value of the label -> its nodes, in the order of the values: a placement each.

    If members are scheduled, only those of their value (plugin TopologyPlacementGenerator).

    Raises:
        DomainUnknown: The nodes of the scheduled members have no value, or several.
    """
    snapshot = state.cache.snapshot()
    domains: dict[str, list[str]] = {}
    for row in np.flatnonzero(snapshot.exists).tolist():
        node = snapshot.node(row)
        value = None if node is None else node.metadata.labels.get(key)
        if node is not None and value is not None:
            domains.setdefault(value, []).append(node.metadata.name)
    scheduled = _domains_of_scheduled(state, group_key, key)
    if scheduled:
        domains = {value: names for value, names in domains.items() if value in scheduled}
    return {value: frozenset(domains[value]) for value in sorted(domains)}


def _domains_of_scheduled(state: EngineState, group_key: str, key: str) -> set[str]:
    found: set[str] = set()
    snapshot = state.cache.snapshot()
    for uid in state.cache.pod_groups.members(group_key).scheduled():
        pod = snapshot.get_pod(uid)
        row = None if pod is None else snapshot.row_of(pod.node_name)
        node = None if row is None else snapshot.node(row)
        value = None if node is None else node.metadata.labels.get(key)
        if pod is not None and node is None:
            text = f'nodeinfo not found for node name "{pod.node_name}"'
            raise DomainUnknown(f"getting node for pod {pod.key}: {text}")
        if pod is None or value is None:
            raise DomainUnknown(f"no topology domain found for pod {pod.key if pod else uid}")
        found.add(value)
    if len(found) > 1:
        raise DomainUnknown(f"more than 1 domain found for pod group: {', '.join(sorted(found))}")
    return found


def _worded(outcome: GroupOutcome, num_placements: int) -> GroupOutcome:
    """The outcome with the number of placements in its message, if none is feasible."""
    if outcome.result is GroupResult.UNSCHEDULABLE:
        outcome.message = (
            f"0/{num_placements} placements are available, "
            f"first placement status: {outcome.message}"
        )
    return outcome
