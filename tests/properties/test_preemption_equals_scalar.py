"""Preemption over all nodes at once equals a dry run of one node and one pod at a time."""

from __future__ import annotations

from collections import Counter

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from stowage.api.config.loading import KubeSchedulerProfile
from stowage.api.objects.meta import ObjectMeta
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Container, ContainerPort, Pod, ResourceRequirements
from stowage.api.objects.policy import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
)
from stowage.api.objects.volume import GCEPersistentDiskVolumeSource, Volume
from stowage.engine.scheduling import (
    SchedulingRequest,
    TieBreaker,
    Unschedulable,
    schedule_pod,
)
from stowage.framework import Candidate, CycleState, Framework, build_profile
from stowage.plugins import in_tree_registry
from stowage.queue.nominator import Nominator
from tests.support.builders import ZONE, make_node
from tests.support.generators.random_cluster import RandomCluster
from tests.support.scalar import preemption as twin
from tests.support.volume_builders import (
    claim_volume,
    make_attachment,
    make_claim,
    make_class,
    make_csi_node,
    make_volume,
)

ALL_NODES = {"minCandidateNodesPercentage": 100, "minCandidateNodesAbsolute": 1}
_CLAIMS = ("c0", "c1", "c2", "c3")
_NODE_NAMES = tuple(f"n{index}" for index in range(6))
_POD_NAMES = tuple(f"p{index}" for index in range(16))
PRIORITIES = (0, 5, 5, 10)


class FullCluster(RandomCluster):
    """Nodes with few free resources, and pods with priorities, sizes, ports and start times."""

    def __init__(self, seed: int, *, volumes: bool = False, **kinds: bool) -> None:
        self._started = 0
        self._volumes = volumes
        super().__init__(seed, **kinds)
        if volumes:
            self._add_storage()
        self.evicting: list[Pod] = []
        self.budgets: list[PodDisruptionBudget] = []
        for index in range(self.random.randint(0, 3)):
            self._add_budget(f"budget-{index}")

    def preemptor(self) -> Pod:
        """A pending pod whose name no placed pod has."""
        return self._with_priority(self.pending_pod("preemptor"), (10, 10, 20))

    def decide_evictions(self) -> None:
        """Forget earlier decisions, and decide to evict some placed pods."""
        for pod in self.evicting:
            self.cluster.cache.forget_eviction(self.cluster.info(pod))
        placed = list(self.cluster.plain.pods.values())
        self.evicting = list(self._some(placed, 12))
        for pod in self.evicting:
            self.cluster.cache.note_eviction(self.cluster.info(pod))

    def nominations(self) -> dict[str, list[Pod]]:
        """Pods nominated to nodes."""
        nominated: dict[str, list[Pod]] = {}
        for index in range(self.random.choice((0, 0, 1, 3))):
            pod = self._with_priority(self._pod(f"nominated-{index}", choosy=True), (5, 10, 20))
            name = self.random.choice(list(self.cluster.plain.nodes))
            nominated.setdefault(name, []).append(pod)
        return nominated

    def _node(self, name: str) -> Node:
        drawn = super()._node(name)
        small = make_node(name, cpu=str(self.random.randint(1, 4)), pods=self.random.choice((2, 9)))
        return msgspec.structs.replace(drawn, status=small.status)

    def _pod(self, name: str, *, choosy: bool) -> Pod:
        return self._with_priority(super()._pod(name, choosy=choosy), PRIORITIES)

    def _place_pod(self) -> None:
        pod = self._pod(self.random.choice(_POD_NAMES), choosy=self._affinity)
        if pod.metadata.uid in self.cluster.plain.pods:
            # Replace the pod of that name, because the volumes of a pod never change.
            self.cluster.remove_pod(pod.metadata.uid)
        self.cluster.bind(pod, self.random.choice(_NODE_NAMES))

    def _with_priority(self, pod: Pod, priorities: tuple[int, ...]) -> Pod:
        self._started += 1
        start = f"2026-01-01T00:{self._started // 60:02d}:{self._started % 60:02d}Z"
        requests: dict[str, str | int | float] = {"cpu": self.random.choice(("500m", "1", "2"))}
        port = ContainerPort(host_port=self.random.choice((80, 81)), protocol="TCP")
        container = Container(
            name="c",
            resources=ResourceRequirements(requests),
            ports=(port,) if self._chance(0.25) else (),
        )
        spec = msgspec.structs.replace(
            pod.spec,
            priority=self.random.choice(priorities),
            containers=(container,),
            volumes=self._pod_volumes() if self._volumes else (),
        )
        status = msgspec.structs.replace(
            pod.status, start_time=start if self._chance(0.9) else None
        )
        return msgspec.structs.replace(pod, spec=spec, status=status)

    def _pod_volumes(self) -> tuple[Volume, ...]:
        claims = [claim_volume(name) for name in _CLAIMS]
        disks = [
            Volume("g", gce_persistent_disk=GCEPersistentDiskVolumeSource("x", read_only=shared))
            for shared in (True, True, False)
        ]
        return self._some(claims, 2) + (self._some(disks, 1) if self._chance(0.4) else ())

    def _add_storage(self) -> None:
        """Claims of every name in every namespace; some claims share a volume."""
        random, seen = self.random, self.cluster.update_storage
        seen(make_class("waits"))
        volumes = [f"d{index}" for index in range(4)]
        for name in volumes:
            zoned = {ZONE: random.choice(("a", "b"))} if self._chance(0.2) else {}
            where = (ZONE, ("a",)) if self._chance(0.2) else None
            seen(make_volume(name, labels=zoned, where=where))
        for namespace in self._namespaces:
            for name in _CLAIMS:
                volume = "" if self._chance(0.2) else random.choice(volumes)
                mode = random.choice(("ReadWriteOnce", "ReadWriteOnce", "ReadWriteOncePod"))
                seen(make_claim(name, namespace=namespace, volume=volume, modes=(mode,)))
        for name in self.cluster.plain.nodes:
            seen(make_csi_node(name, csi_example_com=random.choice((None, 1, 1, 2, 3))))
            if self._chance(0.3):
                seen(make_attachment(f"a-{name}", name, random.choice(volumes)))

    def _add_budget(self, name: str) -> None:
        disrupted: dict[str, str | None] = {
            each: None for each in ("p1", "p2") if self._chance(0.3)
        }
        budget = PodDisruptionBudget(
            ObjectMeta(name=name, namespace=self.random.choice(self._namespaces)),
            PodDisruptionBudgetSpec(self._selector()),
            PodDisruptionBudgetStatus(self.random.choice((0, 0, 1, 2)), disrupted),
        )
        self.cluster.cache.update_budget(budget)
        self.budgets.append(budget)


def _framework(cache_size: int, budgets: str = "BestEffort") -> Framework:
    arguments = {"name": "DefaultPreemption", "args": {**ALL_NODES, "disruptionBudgets": budgets}}
    config = msgspec.convert({"pluginConfig": [arguments]}, KubeSchedulerProfile)
    return Framework(build_profile(config, in_tree_registry()), class_cache_size=cache_size)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.booleans(), st.booleans())
def test_candidates_victims_and_message_equal_the_twins(
    seed: int, affinity: bool, spread: bool, volumes: bool
) -> None:
    world = FullCluster(seed, volumes=volumes, affinity=affinity, spread=spread)
    frameworks = {
        respect: (_framework(1024, budgets), _framework(0, budgets))
        for respect, budgets in ((False, "BestEffort"), (True, "Respect"))
    }
    for _ in range(4):
        world.happen()
        if not world.cluster.plain.nodes:
            continue
        world.decide_evictions()
        pod, nominated = world.preemptor(), world.nominations()
        for respect, pair in frameworks.items():
            decisions = [_decide(each, world, pod, nominated, respect) for each in pair]
            assert decisions[0] == decisions[1]
        world.cluster.cache.validate()


def _decide(
    framework: Framework,
    world: FullCluster,
    pod: Pod,
    nominated: dict[str, list[Pod]],
    respect: bool,
) -> object:
    cluster, snapshot = world.cluster, world.cluster.snapshot()
    nominator = Nominator()
    for name, pods in nominated.items():
        for each in pods:
            nominator.nominate(cluster.info(each), name)
    info = cluster.info(pod)
    ties = TieBreaker(lambda _: 0)
    result = schedule_pod(
        SchedulingRequest(framework, snapshot, info, CycleState(), ties, nominated=nominator)
    )
    if not isinstance(result, Unschedulable) or result.preemption is None:
        return result.node_name if hasattr(result, "node_name") else None
    found = dict(result.preemption.find_candidates())
    wanted, reasons = _wanted(world, pod, nominated, result, respect)
    assert {name: _decision(each) for name, each in found.items()} == wanted
    if wanted:
        _check_chosen(result, world, pod)
    else:
        _check_message(result, reasons, snapshot.num_nodes)
    return wanted, result.message


def _decision(candidate: Candidate) -> tuple[list[str], int]:
    return [victim.uid for victim in candidate.victims], candidate.num_violations


def _wanted(
    world: FullCluster,
    pod: Pod,
    nominated: dict[str, list[Pod]],
    result: Unschedulable,
    respect: bool,
) -> tuple[dict[str, tuple[list[str], int]], Counter[str]]:
    plain, reasons, snapshot = world.cluster.plain, Counter[str](), world.cluster.snapshot()
    candidates = {}
    for row in result.diagnosis.resolvable(snapshot).nonzero()[0].tolist():
        name = snapshot.node_names[row]
        state = twin.NodeState(plain, pod, plain.nodes[name])
        answer = twin.select_victims(state, nominated.get(name, ()), world.budgets)
        if isinstance(answer, frozenset):
            reasons.update(answer)
        elif not answer.pods:
            reasons[f'expected at least one victim pod on node "{name}"'] += 1
        elif respect and twin.is_beyond_budgets(answer.pods, world.budgets, world.evicting):
            reasons["Preemption would violate a PodDisruptionBudget"] += 1
        elif respect:
            candidates[name] = twin.Victims(answer.pods, 0)
        else:
            candidates[name] = answer
    if candidates:
        assert result.preemption is not None
        assert list(result.preemption.tied) == twin.best_nodes(candidates)
    decisions = {
        name: ([victim.metadata.uid for victim in each.pods], each.num_violations)
        for name, each in candidates.items()
    }
    return decisions, reasons


def _check_chosen(result: Unschedulable, world: FullCluster, pod: Pod) -> None:
    """Check that victims have lower priority, and that the pod fits only without all of them."""
    assert result.preemption is not None
    chosen = result.preemption.chosen
    assert chosen is not None
    assert result.nominated_node_name == chosen.node_name == result.preemption.tied[0]
    assert chosen.victims
    assert all(victim.priority < twin.priority(pod) for victim in chosen.victims)
    assert 0 <= chosen.num_violations <= len(chosen.victims)
    node = world.cluster.plain.nodes[chosen.node_name]
    state = twin.NodeState(world.cluster.plain, pod, node)
    leaving = {victim.uid for victim in chosen.victims}
    for other in list(state.on_node):
        if other.metadata.uid in leaving:
            state.remove(other)
    assert state.fits(()) == twin.FITS


def _check_message(result: Unschedulable, reasons: Counter[str], num_nodes: int) -> None:
    if any(reason.startswith("expected at least") for reason in reasons):
        assert "expected at least one victim pod" in result.message
        return
    for reason, count in reasons.items():
        assert f"{count} {reason}" in result.diagnosis.post_filter_message
    prefix = f"preemption: 0/{num_nodes} nodes are available: "
    assert prefix in result.diagnosis.post_filter_message
