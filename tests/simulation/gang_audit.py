"""Invariants of pod groups, checked on every change and at the end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

from stowage.api import Pod
from stowage.api.events import Event, PodGroupsServed
from stowage.api.reflected_kinds import POD_GROUP_SOURCES, ReflectedKind
from stowage.engine import Engine
from tests.simulation.fault_rates import RECOVERY_S, FaultRates
from tests.simulation.feasible_nodes import decoded, is_placed
from tests.simulation.gang_objects import group_of, members_of, min_count_of, racks_of
from tests.simulation.server import (
    GROUPS,
    LABEL_GROUPS,
    NODES,
    PODS,
    Change,
    Json,
    Key,
    ModelServer,
)

KNOWN_WITHIN_S = 5.0
"""How long the scheduler may take to see a change of a group, without faults."""

SERVED_WITHIN_S = 15.0
"""How long the scheduler may take to find out that a kind is served, without faults."""

COMPLETE_WITHIN_S = 15.0
"""How long the bindings of one gang may be apart, without faults."""

GroupKey: TypeAlias = tuple[str, Key]


class _Begun(NamedTuple):
    """A gang of which members are bound, and its minimum is not reached yet."""

    at: float
    min_count: int


class GangAuditor:
    """Follows groups and their members while there are no faults.

    No member is bound into a group that is gone, no gang stays bound in part, and the members of a
    group for one rack are bound in one. Members that are deleted meanwhile count as bound: other
    members do not wait for their replacement.

    Attributes:
        violations: One sentence each.
    """

    def __init__(
        self, server: ModelServer, fault_rates: FaultRates, now: Callable[[], float]
    ) -> None:
        self.violations: list[str] = []
        self._server = server
        self._fault_rates = fault_rates
        self._now = now
        self._changed_at: dict[GroupKey, float] = {}
        self._replaced_at: dict[GroupKey, float] = {}
        self._bound: defaultdict[GroupKey, set[str]] = defaultdict(set)
        self._begun: dict[GroupKey, _Begun] = {}
        self._node_moved_at = 0.0
        server.subscribe(self._take_group, GROUPS, LABEL_GROUPS)
        server.subscribe(self._take_pod, PODS)
        server.subscribe(self._take_node, NODES)

    def check_placed(self, pod: Json) -> None:
        """Check a pod that the scheduler has just bound."""
        named = group_of(pod)
        if named is None or not self._is_known(named[0]):
            return
        group = self._server.collection(named[0]).get(named[1])
        if group is not None and self._now() >= self._replaced_at.get(named, 0.0) + KNOWN_WITHIN_S:
            self._check_rack(named, group, pod)
        if self._now() < self._changed_at.get(named, 0.0) + KNOWN_WITHIN_S:
            return
        if group is None:
            uid, name = pod["metadata"]["uid"], named[1][1]
            self.violations.append(f"pod {uid} was bound, but its group {name} is not there")
        elif (min_count := min_count_of(group)) is not None:
            self._begun.setdefault(named, _Begun(self._now(), min_count))
            self._look_at(named)

    def _check_rack(self, named: GroupKey, group: Json, pod: Json) -> None:
        if "schedulingConstraints" not in group["spec"]:
            return
        if self._now() < self._node_moved_at + KNOWN_WITHIN_S:
            return
        placed = [each for each in members_of(self._server, *named) if each["spec"].get("nodeName")]
        racks = racks_of(self._server, placed)
        if len(racks) != 1 or "" in racks:
            uid = pod["metadata"]["uid"]
            self.violations.append(f"pod {uid} was bound, its group has racks {sorted(racks)}")

    def check(self) -> None:
        """Check all gangs that are bound in part."""
        for named in list(self._begun):
            self._look_at(named)

    def _is_known(self, path: str) -> bool:
        """Whether there are no faults, and the scheduler knows that the kind is served."""
        served_at = self._server.served_groups.get(path)
        return (
            self._now() > self._fault_rates.calm_since + RECOVERY_S
            and served_at is not None
            and self._now() > served_at + SERVED_WITHIN_S
        )

    def _take_group(self, change: Change) -> None:
        metadata = change.current["metadata"]
        named = (change.path, (metadata["namespace"], metadata["name"]))
        before, after = change.before, change.after
        if before is None or after is None or before["spec"] != after["spec"]:
            self._changed_at[named] = change.at
            self._begun.pop(named, None)
            if before is not None:
                self._replaced_at[named] = change.at

    def _take_node(self, change: Change) -> None:
        before, after = change.before, change.after
        labels = [each and each["metadata"]["labels"] for each in (before, after)]
        if labels[0] != labels[1]:
            self._node_moved_at = change.at

    def _take_pod(self, change: Change) -> None:
        named = group_of(change.current)
        if named is not None and (change.after is None or change.after["spec"].get("nodeName")):
            self._bound[named].add(change.current["metadata"]["uid"])
        self.check()

    def _look_at(self, named: GroupKey) -> None:
        begun, num_bound = self._begun[named], len(self._bound[named])
        if num_bound >= begun.min_count:
            del self._begun[named]
        elif self._now() > begun.at + COMPLETE_WITHIN_S:
            del self._begun[named]
            text = f"only {num_bound} of at least {begun.min_count} members"
            self.violations.append(f"group {named[1][1]} has been left with {text}")


def group_events(server: ModelServer) -> Iterator[Event]:
    """What an engine is shown of the present groups."""
    kinds: Iterable[ReflectedKind[Any]] = POD_GROUP_SOURCES
    for kind in kinds:
        source = kind.path.split("/")[2]
        yield PodGroupsServed(source, kind.path in server.served_groups)
        for stored in server.collection(kind.path).values():
            yield kind.seen(decoded(kind.type, stored))


def group_differences(
    server: ModelServer, engine: Engine, scheduler_names: Collection[str]
) -> Iterator[str]:
    """Groups and members of which the engine has another state than the server."""
    groups = engine.state.cache.pod_groups
    known = {
        (each.source, each.group.key): each.group.metadata.resource_version
        for each in groups.groups()
    }
    there = {
        (path.split("/")[2], "/".join(key)): stored["metadata"]["resourceVersion"]
        for path in (GROUPS, LABEL_GROUPS)
        for key, stored in server.collection(path).items()
    }
    for (source, name), version in sorted(known.items() ^ there.items()):
        yield f"the engine differs from the server in the group {name} of {source}: {version}"
    there_by_key = _members_by_key(server, scheduler_names)
    for key in there_by_key.keys() | set(groups.keys()):
        members = groups.members(key)
        pending, placed = there_by_key[key]
        if set(members.assigned) != placed or set(members.unscheduled) != pending:
            has = sorted(members.unscheduled), sorted(members.assigned)
            true = sorted(pending), sorted(placed)
            yield f"the engine has members {has} of group {key}, there are {true}"


def _members_by_key(
    server: ModelServer, scheduler_names: Collection[str]
) -> defaultdict[str, tuple[set[str], set[str]]]:
    """The UIDs of the pending and of the placed members of each group that a pod names."""
    members: defaultdict[str, tuple[set[str], set[str]]] = defaultdict(lambda: (set(), set()))
    for stored in server.collection(PODS).values():
        named = group_of(stored)
        if named is None:
            continue
        pending, placed = members["/".join(named[1])]
        pod = decoded(Pod, stored)
        if is_placed(pod):
            placed.add(pod.metadata.uid)
        elif not pod.spec.node_name and pod.spec.scheduler_name in scheduler_names:
            pending.add(pod.metadata.uid)
    return members
