"""After any sequence of events the cache equals a state built from the objects."""

from __future__ import annotations

from collections import Counter

import msgspec
import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from stowage.api.objects.node import ContainerImage, Node, Taint
from stowage.api.objects.pod import Affinity, Pod, PodAffinity, Toleration
from stowage.api.objects.volume import PersistentVolumeClaim, StorageObject
from stowage.api.values.selectors import (
    NOTHING,
    Operator,
    Requirement,
    Selector,
    compile_label_selector,
    selector_from_labels,
)
from stowage.api.values.tolerations import tolerated
from stowage.api.values.volume_claims import bound_to
from stowage.state import ClusterCache, PodInfo, Snapshot, TermKind, make_pod_info
from stowage.state.nodes.node_matching import requirement_mask, tolerated_taint_sets
from stowage.state.what_if.snapshot import WhatIfSnapshot
from tests.support.builders import (
    HOSTNAME,
    ZONE,
    affinity_term,
    label_selector,
    make_namespace,
    make_node,
    make_pod,
    weighted,
)
from tests.support.generators import volume_strategies as some_storage
from tests.support.volume_builders import claim_volume

NODES = ["n0", "n1", "n2", "n3"]
NAMESPACES = ["red", "blue", "default"]
APPS = ["a", "b", "c"]
KEYS = [HOSTNAME, ZONE, "disk", "absent"]
TAINTS = [
    Taint("gpu", "yes", "NoSchedule"),
    Taint("gpu", "no", "PreferNoSchedule"),
    Taint("old", "", "NoExecute", time_added="2026-01-01T00:00:00Z"),
]
TERMS = [
    affinity_term(ZONE, label_selector({"app": "a"})),
    affinity_term(HOSTNAME, label_selector({"app": "b"}), namespaces=["red", "blue"]),
    affinity_term(ZONE, label_selector({}), namespace_selector=label_selector({"team": "x"})),
]

nodes = st.builds(
    make_node,
    st.sampled_from(NODES),
    cpu=st.sampled_from(["1", "2500m", "4"]),
    zone=st.sampled_from([None, "z0", "z1", "z2"]),
    labels=st.dictionaries(st.just("disk"), st.sampled_from(["1", "20", "ssd"])),
    taints=st.lists(st.sampled_from(TAINTS), max_size=2),
    unschedulable=st.booleans(),
    allocatable=st.dictionaries(st.just("example.com/gpu"), st.sampled_from(["1", "8"])),
    images=st.lists(
        st.sampled_from([ContainerImage(("i:1", "i@x"), 10), ContainerImage(("j:1",), 5)]),
        max_size=2,
        unique=True,
    ),
    declared_features=st.lists(st.sampled_from(["F", "G"]), unique=True),
)
affinities = st.builds(
    lambda near, far, soft: Affinity(
        pod_affinity=PodAffinity(tuple(near)),
        pod_anti_affinity=PodAffinity(tuple(far), tuple(weighted(7, term) for term in soft)),
    ),
    st.lists(st.sampled_from(TERMS), max_size=2),
    st.lists(st.sampled_from(TERMS), max_size=1),
    st.lists(st.sampled_from(TERMS), max_size=1),
)
pods = st.builds(
    make_pod,
    st.sampled_from(["p0", "p1", "p2", "p3", "p4", "p5"]),
    namespace=st.sampled_from(NAMESPACES),
    cpu=st.sampled_from([None, "100m", "2"]),
    requests=st.dictionaries(
        st.sampled_from(["example.com/gpu", "example.com/fpga"]), st.just("1"), max_size=1
    ),
    labels=st.fixed_dictionaries({"app": st.sampled_from(APPS)}),
    affinity=st.one_of(st.none(), affinities),
    host_ports=st.lists(st.sampled_from([80, 443]), max_size=1),
    terminating=st.booleans(),
    volumes=st.lists(
        st.one_of(st.sampled_from(some_storage.CLAIMS).map(claim_volume), some_storage.disks),
        max_size=2,
    ).map(tuple),
)
selectors = st.sampled_from(
    [
        NOTHING,
        selector_from_labels({}),
        selector_from_labels({"app": "a"}),
        compile_label_selector(label_selector(None, ("app", "NotIn", ["a"]))),
    ]
)
scopes = st.sampled_from([None, frozenset(), frozenset(["red"]), frozenset(NAMESPACES)])
requirements = st.sampled_from(
    [
        Requirement(ZONE, Operator.IN, ("z0", "z2")),
        Requirement(ZONE, Operator.NOT_IN, ("z1",)),
        Requirement("disk", Operator.GT, ("5",)),
        Requirement("disk", Operator.EXISTS),
        Requirement("absent", Operator.DOES_NOT_EXIST),
    ]
)
TOLERATIONS = [
    (),
    (Toleration("gpu", "Exists"),),
    (Toleration("gpu", "Equal", "yes"), Toleration("old", "Exists", effect="NoExecute")),
]


class CacheEqualsRebuild(RuleBasedStateMachine):
    """Applies the same events to a cache and to a plain model (dicts of objects)."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = ClusterCache()
        self.nodes: dict[str, Node] = {}
        self.placed: dict[str, PodInfo] = {}
        self.assumed: set[str] = set()
        self.namespaces: dict[str, dict[str, str]] = {}
        self.storage: dict[tuple[type[StorageObject], str], StorageObject] = {}

    def info(self, pod: Pod, node_name: str) -> PodInfo:
        spec = msgspec.structs.replace(pod.spec, node_name=node_name)
        return make_pod_info(msgspec.structs.replace(pod, spec=spec), self.cache.classes)

    @rule(node=nodes)
    def update_node(self, node: Node) -> None:
        change = self.cache.update_node(node)
        assert (change.old is None) == (node.metadata.name not in self.nodes)
        self.nodes[node.metadata.name] = node

    @rule(name=st.sampled_from(NODES))
    def remove_node(self, name: str) -> None:
        gone = self.cache.remove_node(name)
        assert (gone is None) == (self.nodes.pop(name, None) is None)

    @rule(first=st.integers(100, 1000), number=st.integers(60, 80))
    def many_nodes_come_and_go(self, first: int, number: int) -> None:
        for index in range(first, first + number):
            self.cache.update_node(make_node(f"extra{index}", zone="z0"))
        for index in range(first, first + number):
            self.cache.remove_node(f"extra{index}")

    @rule(pod=pods, node_name=st.sampled_from(NODES))
    def update_pod(self, pod: Pod, node_name: str) -> None:
        info = self.info(pod, node_name)
        change = self.cache.update_pod(info)
        assert change.old == self.placed.get(info.uid)
        was_there = change.old is not None and change.old.node_name == node_name
        assert change.confirmed == (info.uid in self.assumed and was_there)
        self.assumed.discard(info.uid)
        self.placed[info.uid] = info

    @rule(name=st.sampled_from(["uid-p0", "uid-p1", "uid-p2", "uid-p3"]))
    def remove_pod(self, name: str) -> None:
        assert self.cache.remove_pod(name) == self.placed.pop(name, None)
        self.assumed.discard(name)

    @rule(pod=pods, node_name=st.sampled_from(NODES))
    def assume_pod(self, pod: Pod, node_name: str) -> None:
        info = self.info(pod, "")
        if info.uid not in self.placed:
            self.placed[info.uid] = self.cache.assume_pod(info, node_name)
            self.assumed.add(info.uid)

    @rule(uid=st.sampled_from(["uid-p0", "uid-p1", "uid-p2", "uid-p3"]))
    def forget_pod(self, uid: str) -> None:
        assert (self.cache.forget_pod(uid) is not None) == (uid in self.assumed)
        if uid in self.assumed:
            self.assumed.discard(uid)
            del self.placed[uid]

    @rule(obj=some_storage.objects)
    def update_storage(self, obj: StorageObject) -> None:
        change = self.cache.update_storage(obj)
        key = (type(obj), obj.metadata.namespaced_name)
        assert change.old == self.storage.get(key)
        self.storage[key] = obj

    @rule(obj=some_storage.objects)
    def remove_storage(self, obj: StorageObject) -> None:
        key = (type(obj), obj.metadata.namespaced_name)
        assert self.cache.remove_storage(*key) == self.storage.pop(key, None)

    @rule(
        name=st.sampled_from(some_storage.VOLUMES),
        claim=some_storage.unbound_claims,
        uid=st.sampled_from(["uid-p0", "uid-p1"]),
        is_kept=st.booleans(),
    )
    def volume_assumed(
        self, name: str, claim: PersistentVolumeClaim, uid: str, is_kept: bool
    ) -> None:
        volumes = self.cache.snapshot().storage.volumes
        volume = volumes.get_api_object(name)
        if volume is None:
            return
        volumes.assume(bound_to(volume, claim), uid)
        assert name in {key for key, _ in volumes.assumptions()}
        volumes.restore(name, "uid-of-another-pod")
        if not is_kept:
            volumes.restore(name, uid)
            assert volumes.get(name) is volumes.get_api_object(name) is volume

    @rule(name=st.sampled_from(NAMESPACES), team=st.sampled_from(["x", "y"]))
    def update_namespace(self, name: str, team: str) -> None:
        namespace = make_namespace(name, labels={"team": team})
        self.cache.update_namespace(namespace)
        self.namespaces[name] = namespace.metadata.labels

    @rule(name=st.sampled_from(NAMESPACES))
    def remove_namespace(self, name: str) -> None:
        assert self.cache.remove_namespace(name) == (self.namespaces.pop(name, None) is not None)

    @rule(selector=selectors, scope=scopes, skip=st.booleans(), key=st.sampled_from(KEYS))
    def count_matching(
        self, selector: Selector, scope: frozenset[str] | None, skip: bool, key: str
    ) -> None:
        snapshot = self.cache.snapshot()
        counts = snapshot.pods.count_matching(selector, scope, skip_terminating=skip)
        meant = [
            pod
            for pod in self.placed.values()
            if (scope is None or pod.namespace in scope)
            and not (skip and pod.terminating)
            and selector.matches(pod.labels)
        ]
        assert counts.total == len(meant)
        for name in self.nodes:
            row = snapshot.row_of(name)
            assert counts.per_node[row] == sum(pod.node_name == name for pod in meant)
        column = snapshot.label_column(key)
        per_domain = counts.per_domain(key)
        assert len(per_domain) == column.num_values
        for code, num_pods in enumerate(per_domain.tolist()):
            value = column.value(code)
            inside = {
                name
                for name, node in self.nodes.items()
                if value is not None and node.metadata.labels.get(key) == value
            }
            assert num_pods == sum(pod.node_name in inside for pod in meant)

    @rule(pod=pods)
    def existing_terms_matching(self, pod: Pod) -> None:
        asking = self.info(pod, "")
        labels = self.namespaces.get(asking.namespace, {})
        for which in TermKind:
            index = self.cache.snapshot().pods
            found = index.existing_terms_matching(which, asking)
            want = {
                term
                for placed in self.placed.values()
                for term in placed.pod_class.terms[which]
                if term.matches(asking.namespace, asking.labels, labels)
            }
            assert {carried.term for carried in found} == want
            assert len(found) == len(want)

    @rule(requirement=requirements)
    def requirement_on_nodes(self, requirement: Requirement) -> None:
        snapshot = self.cache.snapshot()
        mask = requirement_mask(snapshot.all_nodes, requirement)
        for name, node in self.nodes.items():
            value = node.metadata.labels.get(requirement.key)
            assert mask[snapshot.row_of(name)] == requirement.matches_value(value)

    @rule(tolerations=st.sampled_from(TOLERATIONS))
    def tolerations_on_nodes(self, tolerations: tuple[Toleration, ...]) -> None:
        snapshot = self.cache.snapshot()
        effects = ("NoSchedule", "NoExecute")
        mask = tolerated_taint_sets(snapshot, tolerations, effects)[snapshot.taint_set]
        for name, node in self.nodes.items():
            harmful = [taint for taint in node.spec.taints if taint.effect in effects]
            want = all(tolerated(taint, tolerations) for taint in harmful)
            assert mask[snapshot.row_of(name)] == want

    @rule(pod=pods, node_name=st.sampled_from(NODES), selector=selectors)
    def what_if(self, pod: Pod, node_name: str, selector: Selector) -> None:
        snapshot = self.cache.snapshot()
        asking = self.info(pod, "")
        if node_name not in self.nodes or asking.uid in self.placed:
            return
        without = [uid for uid, pod in self.placed.items() if pod.node_name == node_name][:2]
        removed = [self.placed[uid] for uid in without]
        row = snapshot.row_of(node_name)
        assert row is not None
        changed = WhatIfSnapshot(snapshot, removed, [asking], row)
        pods_after = [pod for uid, pod in self.placed.items() if uid not in without]
        pods_after.append(asking.on_node(node_name))
        assert_shows(changed, self.nodes, pods_after, selector)
        assert_shows(snapshot, self.nodes, list(self.placed.values()), selector)

    @invariant()
    def columns_equal_objects(self) -> None:
        self.cache.validate()
        assert self.cache.counts() == {
            "nodes": len(self.nodes),
            "pods": len(self.placed),
            "assumed_pods": len(self.assumed),
        }


def assert_shows(
    snapshot: Snapshot, nodes: dict[str, Node], pods: list[PodInfo], selector: Selector
) -> None:
    counts = snapshot.pods.count_matching(selector, None, skip_terminating=False)
    assert counts.per_domain(ZONE).sum() == sum(
        selector.matches(pod.labels) and ZONE in nodes[pod.node_name].metadata.labels
        for pod in pods
        if pod.node_name in nodes
    )
    for name in nodes:
        row = snapshot.row_of(name)
        here = [pod for pod in pods if pod.node_name == name]
        requested = np.sum([snapshot.request_vector(pod.pod_class) for pod in here], axis=0)
        assert (snapshot.requested[row] == requested).all()
        assert snapshot.num_pods[row] == len(here)
        assert counts.per_node[row] == sum(selector.matches(pod.labels) for pod in here)
        assert {pod.uid for pod in snapshot.pods_on(name)} == {pod.uid for pod in here}
        for port in (("0.0.0.0", "TCP", 80), ("0.0.0.0", "TCP", 443)):
            in_use = any(port in pod.pod_class.host_ports for pod in here)
            assert snapshot.ports_in_conflict([port])[row] == in_use
    for which in TermKind:
        existing_terms = snapshot.pods.existing_terms(which)
        found = Counter({each.term: each.counts.total for each in existing_terms})
        assert +found == Counter(term for pod in pods for term in pod.pod_class.terms[which])


TestCacheEqualsRebuild = CacheEqualsRebuild.TestCase
TestCacheEqualsRebuild.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
