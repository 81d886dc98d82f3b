"""Validation finds each kind of inconsistency, and none in a state that changes between steps."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from stowage.api.objects.node import ContainerImage, Node, Taint
from stowage.api.objects.pod import Affinity, Pod, PodAffinity
from stowage.api.objects.volume import StorageObject
from stowage.api.values.csi_migration import AttachedVolume
from stowage.api.values.selectors import compile_label_selector
from stowage.state import ClusterCache, InvariantViolation, PodInfo, make_pod_info, validation
from stowage.state.cluster_state import ClusterState
from stowage.state.pods import validation as pods_validation
from stowage.state.pods.affinity_terms import TermKind
from stowage.state.pods.label_groups import LabelGroup
from tests.support.builders import (
    ZONE,
    affinity_term,
    label_selector,
    make_node,
    make_pod,
    weighted,
)
from tests.support.volume_builders import (
    DRIVER,
    claim_volume,
    make_attachment,
    make_capacity,
    make_claim,
    make_class,
    make_csi_node,
    make_volume,
)

WEB = label_selector({"app": "web"})
SELECTOR = compile_label_selector(WEB)
IMAGE = ContainerImage(("registry.example.com/web:1",), 10)
OTHER_IMAGE = ContainerImage(("registry.example.com/other:1",), 10)
GPU, UNUSED = "example.com/gpu", "example.com/unused"
ROW = 0
"""The row of node n0; its pods are p0 and p3."""


class _OpenCache(ClusterCache):
    @property
    def state(self) -> ClusterState:
        """What the cache writes, for tests that break it."""
        return self._state

    def info(self, pod: Pod) -> PodInfo:
        """The pod as the cache takes it."""
        return make_pod_info(pod, self.classes)

    def look(self) -> None:
        """Have all counts and orders built that are kept up to date from then on."""
        snapshot = self.snapshot()
        for skip in (True, False):
            counts = snapshot.pods.count_matching(SELECTOR, None, skip_terminating=skip)
            counts.per_domain(ZONE)
        self.state.ranked.of(np.arange(3), 3)
        self.state.columns.labels.column(ZONE)


def _node(index: int) -> Node:
    return make_node(
        f"n{index}",
        zone=f"z{index % 2}",
        allocatable={GPU: "1", UNUSED: "0"} if index == 0 else {},
        taints=(Taint("a", "b", "NoSchedule"),),
        images=(IMAGE,),
        declared_features=("Feature",),
    )


def _pod(index: int, node: str, **fields: Any) -> Pod:
    term = affinity_term(ZONE, WEB)
    return make_pod(
        f"p{index}",
        node=node,
        cpu="100m",
        labels={"app": "web"},
        host_ports=(8000 + index,),
        volumes=(claim_volume(f"c{index}"),),
        affinity=Affinity(
            pod_affinity=PodAffinity((term,), (weighted(5, term),)),
            pod_anti_affinity=PodAffinity((), (weighted(7, term),)),
        ),
        **fields,
    )


def _storage(index: int) -> tuple[StorageObject, ...]:
    return (
        make_volume(f"v{index}", given_to=f"c{index}"),
        make_volume(f"free-{index}"),
        make_claim(f"c{index}", volume=f"v{index}"),
        make_attachment(f"a{index}", f"n{index % 3}", f"v{index}"),
        make_csi_node(f"n{index % 3}", migrated=("kubernetes.io/aws-ebs",), csi_example_com=9),
        make_capacity(f"s{index}", "1Gi", None),
    )


@pytest.fixture
def cache() -> _OpenCache:
    cache = _OpenCache()
    cache.update_storage(make_class())
    for index in range(3):
        cache.update_node(_node(index))
    for index in range(4):
        for obj in _storage(index):
            cache.update_storage(obj)
        cache.update_pod(cache.info(_pod(index, f"n{index % 3}")))
    cache.look()
    cache.validate()
    return cache


Break = Callable[[_OpenCache], object]


def _node_becomes(change: Callable[[Node], Node]) -> Break:
    """Another version of the node, without its columns."""

    def break_(cache: _OpenCache) -> None:
        node = cache.state.columns.nodes[ROW]
        assert node is not None
        cache.state.columns.keep_node(ROW, change(node))

    return break_


def _spec(**fields: object) -> Callable[[Node], Node]:
    return lambda node: replace(node, spec=replace(node.spec, **fields))


def _status(**fields: object) -> Callable[[Node], Node]:
    return lambda node: replace(node, status=replace(node.status, **fields))


def _without(node: Node, resource: str) -> dict[str, Any]:
    return {name: text for name, text in node.status.allocatable.items() if name != resource}


def _labels(node: Node) -> Node:
    return replace(node, metadata=replace(node.metadata, labels={}))


def _attach_more(cache: _OpenCache) -> None:
    counts = cache.state.volume_use.attached(DRIVER)
    assert counts is not None
    counts[ROW] += 1


def _search_order(cache: _OpenCache) -> None:
    cache.state.columns.search_order.put(ROW, {})


def _count_on_row(cache: _OpenCache) -> None:
    next(iter(cache.state.pods.kept_counts().values())).add(ROW, 1)


def _count_more(cache: _OpenCache) -> None:
    next(iter(cache.state.pods.kept_counts().values())).total += 1


def _term_of_no_pod(cache: _OpenCache) -> None:
    affinity = Affinity(pod_affinity=PodAffinity((affinity_term("other", WEB),), ()))
    pod = cache.info(make_pod(affinity=affinity))
    cache.state.pods.add(pod, ROW)
    (term,) = pod.pod_class.required_affinity_terms
    existing = cache.state.pods.existing_term(TermKind.REQUIRED_AFFINITY, term)
    assert existing is not None
    existing.counts.add(ROW, -1)


def _count_and_uncount(cache: _OpenCache) -> None:
    """The rows are wrong, their sum is right."""
    for counts in cache.state.pods.kept_counts().values():
        counts.add(0, 1)
        counts.add(1, -1)


def _term(which: TermKind, row: int, delta: int) -> Break:
    def break_(cache: _OpenCache) -> None:
        (existing,) = cache.state.pods.existing_terms(which)
        existing.counts.add(row, delta)

    return break_


def _forget_term(cache: _OpenCache) -> None:
    for index in range(4):
        pod = cache.state.placed.get(f"uid-p{index}")
        assert pod is not None
        cache.state.pods.remove(pod, index % 3)


def _group(cache: _OpenCache) -> LabelGroup:
    """The label group of all pods."""
    pod = cache.state.placed.get("uid-p0")
    assert pod is not None
    group = cache.state.pods.groups.get(pod.pod_class, pod.terminating)
    assert group is not None
    return group


def _add_to_group(cache: _OpenCache) -> None:
    _group(cache).add(ROW)


def _group_elsewhere(cache: _OpenCache) -> None:
    _group(cache).add(40)


def _move_entry(cache: _OpenCache) -> None:
    cache.state.pods.groups.placed().rows[_group(cache).entries[ROW]] = 40


def _unmarked_order(cache: _OpenCache) -> None:
    state = cache.state
    state.placed.put(cache.info(_pod(3, "n0", started="2020-01-01T00:00:00Z")), ROW)
    state.placed.reordered.clear()


def _other_version_by_uid(cache: _OpenCache) -> None:
    cache.state.placed.by_uid["uid-p0"] = cache.info(_pod(0, "n0", resource_version="2"))


def _uninstall(cache: _OpenCache) -> None:
    installed = cache.state.csi_nodes.installed(DRIVER)
    assert installed is not None
    installed[:] = False


def _pod_with(name: str) -> Callable[[_OpenCache], PodInfo]:
    return lambda cache: cache.info(make_pod(node="n0", volumes=(claim_volume(name),)))


BROKEN: dict[str, tuple[Break, str]] = {
    "usage": (
        lambda cache: cache.state.columns.add_pod(ROW, cache.info(make_pod(cpu="1")).pod_class),
        "requested of node n0",
    ),
    "usage by a pod without requests": (
        lambda cache: cache.state.columns.add_pod(ROW, cache.info(make_pod()).pod_class),
        "nonzero_requested of node n0",
    ),
    "allocatable": (
        _node_becomes(_status(allocatable={"cpu": "1"})),
        "allocatable of node n0",
    ),
    "a resource without a column": (
        _node_becomes(lambda node: make_node("n0", cpu="4", allocatable={GPU: "1", "a/b": "0"})),
        "resources of node n0 in row 0 without a column",
    ),
    "taints": (_node_becomes(_spec(taints=())), "taints of node n0"),
    "unschedulable": (_node_becomes(_spec(unschedulable=True)), "unschedulable of node n0"),
    "features": (_node_becomes(_status(declared_features=())), "features of node n0"),
    "labels": (_node_becomes(_labels), f"label {ZONE} of row 0"),
    "search order": (_search_order, "zone of row 0 in the search order"),
    "an image too few": (
        lambda cache: cache.state.columns.images.replace(1, (IMAGE,), ()),
        "images of node n1",
    ),
    "an image too many": (
        lambda cache: cache.state.columns.images.replace(ROW, (), (OTHER_IMAGE,)),
        "images of node n0",
    ),
    "a row in use": (
        lambda cache: cache.state.placed.put(cache.info(_pod(9, "")), 9),
        "row in use: node  in row 9",
    ),
    "a pod on another node's row": (
        lambda cache: cache.state.placed.put(cache.info(_pod(9, "n1")), ROW),
        "node of pod default/p9",
    ),
    "a pod by its UID": (_other_version_by_uid, "pod default/p0 by its UID"),
    "a pod without a row": (
        lambda cache: cache.state.placed.by_uid.update(x=cache.info(_pod(9, "n1"))),
        "pods by row",
    ),
    "the number of pods with a priority": (
        lambda cache: cache.state.placed.num_by_priority.update({0: 9}),
        "pods by priority",
    ),
    "a pod with a priority that no pod has": (
        lambda cache: cache.state.placed.num_by_priority.clear(),
        "pod default/p0 by its priority",
    ),
    "the order of pods": (_unmarked_order, "order of the pods on node n0"),
    "a count on a row": (_count_on_row, "pods matching .* on row 0"),
    "the sum of all counts": (_count_more, "pods matching .* in all"),
    "a count on two rows": (_count_and_uncount, "pods matching .* on row 0"),
    "a count on a row without a node": (
        lambda cache: next(iter(cache.state.pods.kept_counts().values())).add(40, 1),
        "pods matching .* on row 40",
    ),
    "the pods of a label group on a row": (_add_to_group, "pods of label group .* on row 0"),
    "the place of a label group's pods": (_move_entry, "entry of label group .* on row 0"),
    "pods of a label group on a row without a node": (_group_elsewhere, "pods of label groups"),
    "a term on a row with such pods": (
        _term(TermKind.REQUIRED_AFFINITY, ROW, 1),
        "pods with .* on row 0",
    ),
    "a term on a row without pods": (
        _term(TermKind.PREFERRED_ANTI_AFFINITY, 40, 1),
        "pods with .* on row 40",
    ),
    "a term that no pod has": (_term_of_no_pod, "pods with .* exist"),
    "a term that is not listed": (_forget_term, "pods with .* on row 0"),
    "a resource that no node has": (
        _node_becomes(lambda node: _status(allocatable=_without(node, UNUSED))(node)),
        f"some node has the resource {UNUSED}",
    ),
    "users of a claim, too many": (
        lambda cache: cache.state.volume_use.add_pod(_pod_with("other")(cache), 40),
        "users of claims: .* on row 40: expected 0, found 1",
    ),
    "users of a claim, too few": (
        lambda cache: cache.state.volume_use.remove_pod(_pod_with("c0")(cache), ROW),
        "users of claims: .* on row 0: expected 1, found 0",
    ),
    "an attachment": (
        lambda cache: cache.state.volume_use.add_attachment(AttachedVolume(DRIVER, "x"), ROW),
        "volumes of attachments",
    ),
    "an attachment to a node without a row": (
        lambda cache: cache.state.storage.put(make_attachment("a9", "n9", "v0")),
        "attachment a9 has a row",
    ),
    "a CSINode without a row": (
        lambda cache: cache.state.storage.put(make_csi_node("n9")),
        "CSINode n9 has a row",
    ),
    "a CSINode": (
        lambda cache: cache.state.csi_nodes.put(ROW, make_csi_node("n0")),
        "CSINode of row 0",
    ),
    "a driver on a node": (
        _uninstall,
        f"{DRIVER} installed on n",
    ),
    "a limit too many": (
        lambda cache: cache.state.csi_nodes.put(40, make_csi_node("n0", csi_example_com=3)),
        f"number of limits of {DRIVER}",
    ),
    "an attached volume that nothing uses": (_attach_more, "attached volumes"),
    "an object missing in a look-up": (
        lambda cache: cache.state.storage.look_ups()["volume"].clear(),
        "storage by volume v0",
    ),
    "an entry too many by class of claim": (
        lambda cache: cache.state.storage.look_ups()["class of claim"].update(x={"d/c": None}),
        "number of entries by class of claim",
    ),
    "an entry too many by volume": (
        lambda cache: cache.state.storage.look_ups()["volume"].update(x={"d/c": None}),
        "number of entries by volume",
    ),
    "an entry too many by class of capacity": (
        lambda cache: cache.state.storage.look_ups()["class of capacity"].update(x={"c": None}),
        "number of entries by class of capacity",
    ),
    "an entry too many by attached volume": (
        lambda cache: cache.state.storage.look_ups()["attached volume"].update(x={"a": None}),
        "number of entries by attached volume",
    ),
    "a volume too many": (
        lambda cache: cache.state.storage.look_ups()["class and capacity, free"].update(
            x={"v": None}
        ),
        "number of volumes in look-ups",
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_validation_finds(what: str, cache: _OpenCache) -> None:
    break_, subject = BROKEN[what]
    break_(cache)
    with pytest.raises(InvariantViolation, match=subject):
        cache.validate()


@pytest.mark.parametrize(
    "what", ["a count on a row without a node", "a term on a row without pods"]
)
def test_validation_looks_at_each_of_many_portions(
    what: str, cache: _OpenCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pods_validation, "_ROWS_AT_ONCE", 1)
    break_, subject = BROKEN[what]
    break_(cache)
    with pytest.raises(InvariantViolation, match=subject):
        cache.validate()


def test_rows_in_which_nothing_is_are_compared_in_one_step(cache: _OpenCache) -> None:
    num_blank = cache.state.columns.names.count("")
    at_once = sum(1 for _ in cache.validation_steps())
    assert num_blank > 1
    assert at_once < cache.state.columns.num_rows


@pytest.mark.parametrize(
    "column",
    ["exists", "allocatable", "requested", "nonzero_requested", "num_pods", "unschedulable"],
)
def test_a_row_without_a_node_in_which_something_is_left_is_named(
    cache: _OpenCache, column: str
) -> None:
    columns = cache.state.columns
    row = columns.num_rows - 2
    assert not columns.names[row]
    getattr(columns, f"_{column}")[row] = 1
    with pytest.raises(InvariantViolation, match=f"in row {row}"):
        cache.validate()


@pytest.mark.parametrize("seed", range(20))
def test_the_state_may_change_between_two_steps(
    cache: _OpenCache, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validation, "_ROWS_AT_ONCE", 1)
    chance = random.Random(seed)
    num_steps = 0
    for _ in cache.validation_steps():
        num_steps += 1
        _change(cache, chance)
    assert num_steps > cache.state.columns.num_rows


def _change(cache: _OpenCache, chance: random.Random) -> None:
    """Change something about a pod, a node or a storage object."""
    index = chance.randrange(8)
    node = f"n{chance.randrange(4)}"
    match chance.randrange(6):
        case 0:
            pod = _pod(index, node, terminating=chance.random() < 0.5)
            cache.update_pod(cache.info(pod))
        case 1:
            cache.remove_pod(f"uid-p{index}")
        case 2:
            cache.update_node(_node(index % 4))
        case 3:
            cache.remove_node(node)
        case 4:
            for obj in _storage(index):
                cache.update_storage(obj)
        case _:
            for obj in _storage(index):
                cache.remove_storage(type(obj), obj.metadata.namespaced_name)
    cache.look()
