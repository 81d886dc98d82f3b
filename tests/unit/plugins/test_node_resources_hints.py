"""Queueing hints of NodeResourcesFit, as in v1.36."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from stowage.api.cluster_events import QueueingHint
from stowage.api.objects.device import DeviceClass
from stowage.plugins.node_resources import NodeResourcesFit, NodeResourcesFitArgs
from tests.support.builders import make_node
from tests.support.device_builders import make_class
from tests.unit.plugins.device_cluster import cluster_of
from tests.unit.plugins.hints import A, R, ask, info

FIT = NodeResourcesFit(NodeResourcesFitArgs())
GROUP = "example.com"
GPU = f"{GROUP}/gpu"


@pytest.mark.parametrize(
    ("old", "new", "helps"),
    [
        (None, make_class("gpu", resource="example.com/gpu"), True),
        (None, make_class("gpu", resource="example.com/other"), False),
        (None, make_class("wanted"), True),
        (make_class("wanted"), make_class("wanted"), False),
        (make_class("gpu"), make_class("gpu", resource="example.com/gpu"), True),
        (make_class("gpu", resource=GPU), make_class("gpu", resource=GPU), False),
        (make_class("gpu"), make_class("gpu", resource="example.com/none"), True),
    ],
    ids=[
        "serves it",
        "serves another",
        "implicit",
        "implicit before",
        "serves it now",
        "served it before",
        "a request of 0",
    ],
)
def test_a_class_requeues_pods_that_request_its_resource(
    old: DeviceClass | None, new: DeviceClass, helps: bool
) -> None:
    implicit = "deviceclass.resource.kubernetes.io/wanted"
    pod = info("p", requests={GPU: "1", implicit: "1", "example.com/none": "0"})
    hints = {each.event.resource: each.hint for each in FIT.events_to_register()}
    hint = hints[R.DEVICE_CLASS]
    assert hint is not None
    assert hint(pod, old, new) is QueueingHint.when(helps)


@pytest.mark.parametrize(
    ("deleted", "helps"),
    [({"node": "n"}, True), ({"nominated_node": "n"}, True), ({}, False)],
    ids=["from a node", "with a nominated node", "without a node"],
)
def test_fit_queues_for_deletion_of_a_pod_with_a_node(deleted: dict[str, Any], helps: bool) -> None:
    answer = ask(FIT, A.DELETE, info("p", cpu="1"), info("other", **deleted))
    assert answer is QueueingHint.when(helps)


@pytest.mark.parametrize(
    ("name", "before", "after", "helps"),
    [
        ("p", {"cpu": "2"}, {"cpu": "1"}, True),
        ("p", {"memory": "2"}, {"memory": "1"}, True),
        ("other", {"cpu": "2", "node": "n"}, {"cpu": "1", "node": "n"}, True),
        ("other", {"cpu": "2", "node": "n"}, {"node": "n"}, True),
        ("other", {"memory": "2", "node": "n"}, {"memory": "1", "node": "n"}, False),
        ("other", {"cpu": "2"}, {"cpu": "1"}, False),
        ("other", {"cpu": "1", "node": "n"}, {"cpu": "2", "node": "n"}, False),
    ],
    ids=[
        "itself",
        "itself, in anything",
        "a pod on a node",
        "a pod on a node that requests nothing any more",
        "a pod on a node, in what it does not request",
        "a pod on no node",
        "no: a pod grew",
    ],
)
def test_fit_queues_for_a_pod_that_requests_less(
    name: str, before: dict[str, Any], after: dict[str, Any], helps: bool
) -> None:
    pod = info("p", cpu="2")
    answer = ask(FIT, A.UPDATE_POD_SCALE_DOWN, pod, info(name, **before), info(name, **after))
    assert answer is QueueingHint.when(helps)


@pytest.mark.parametrize(
    ("pod", "node", "helps"),
    [
        ({"cpu": "4"}, {}, True),
        ({"cpu": "5"}, {}, False),
        ({}, {}, True),
        ({}, {"pods": 0}, False),
        ({"requests": {"example.com/gpu": "1"}}, {}, False),
        ({"requests": {"example.com/gpu": "1"}}, {"allocatable": {"example.com/gpu": "1"}}, True),
        ({"requests": {"example.com/gpu": "0"}}, {}, True),
    ],
    ids=[
        "just as large",
        "too small",
        "no requests",
        "takes no pods",
        "lacks a resource",
        "has the resource",
        "nothing of the resource is requested",
    ],
)
def test_fit_queues_for_an_added_node_that_the_pod_fits_while_empty(
    pod: dict[str, Any], node: dict[str, Any], helps: bool
) -> None:
    answer = ask(FIT, A.ADD, info(**pod), None, make_node(**node))
    assert answer is QueueingHint.when(helps)


@pytest.mark.parametrize(
    "args", [{"ignored_resources": (GPU,)}, {"ignored_resource_groups": (GROUP,)}]
)
def test_ignored_resources_do_not_count_in_hints(args: dict[str, Any]) -> None:
    fit = NodeResourcesFit(NodeResourcesFitArgs(**args))
    pod = info("p", cpu="4", requests={GPU: "1"})
    small, large = make_node("n", cpu="2"), make_node("n", cpu="4")
    assert ask(fit, A.ADD, pod, None, large) is QueueingHint.QUEUE
    assert ask(fit, A.UPDATE_NODE_ALLOCATABLE, pod, small, large) is QueueingHint.QUEUE
    assert ask(fit, A.ADD, pod, None, small) is QueueingHint.SKIP
    assert ask(FIT, A.ADD, pod, None, large) is QueueingHint.SKIP


@pytest.mark.parametrize(
    ("pod", "before", "after", "helps"),
    [
        ({"cpu": "2"}, {"cpu": "1"}, {"cpu": "2"}, True),
        ({"cpu": "2"}, {"cpu": "2"}, {"cpu": "3"}, True),
        ({"cpu": "2"}, {"cpu": "4"}, {"cpu": "3"}, False),
        ({"cpu": "2"}, {"memory": "1Gi"}, {"memory": "2Gi"}, False),
        ({"cpu": "2"}, {"pods": 1}, {"pods": 2}, True),
        ({}, {"pods": 1}, {"pods": 2}, True),
        ({}, {"cpu": "1"}, {"cpu": "2"}, False),
        ({"cpu": "8"}, {"cpu": "1"}, {"cpu": "2"}, False),
    ],
    ids=[
        "has enough now",
        "has more",
        "has less",
        "has more of what the pod does not request",
        "takes more pods",
        "takes more pods, and the pod requests nothing",
        "has more, and the pod requests nothing",
        "has more and not enough",
    ],
)
def test_fit_queues_for_a_node_with_more_of_what_the_pod_requests(
    pod: dict[str, Any], before: dict[str, Any], after: dict[str, Any], helps: bool
) -> None:
    change = make_node(**before), make_node(**after)
    answer = ask(FIT, A.UPDATE_NODE_ALLOCATABLE, info(**pod), *change)
    assert answer is QueueingHint.when(helps)


def test_each_node_update_is_parsed_again() -> None:
    sizes = [make_node(cpu=str(cpu)) for cpu in (1, 2, 4, 2, 4, 8)]
    hint = FIT.events_to_register()[1].hint
    assert hint is not None
    answer = [hint(info(cpu="3"), old, new) for old, new in pairwise(sizes)]
    assert [each is QueueingHint.QUEUE for each in answer] == [False, True, False, True, True]


@pytest.mark.parametrize(
    ("before", "after", "helps"),
    [
        (None, {"cpu": "4"}, True),
        (None, {"cpu": "2"}, False),
        (None, {"cpu": "4", "allocatable": {GPU: "1"}}, False),
        ({"cpu": "4"}, {"cpu": "4", "memory": "1Gi"}, True),
        ({"cpu": "4"}, {"cpu": "2"}, False),
        ({"cpu": "4", "allocatable": {GPU: "2"}}, {"cpu": "4", "allocatable": {GPU: "2"}}, False),
    ],
    ids=[
        "new",
        "new and too small",
        "new, with too few of its own",
        "changed, devices may serve it",
        "changed and too small",
        "changed, has the resource itself",
    ],
)
def test_devices_serve_what_a_node_lacks(
    before: dict[str, Any] | None, after: dict[str, Any], helps: bool
) -> None:
    fit = NodeResourcesFit(NodeResourcesFitArgs())
    fit.read_snapshots(cluster_of(make_class("gpu", resource=GPU)).snapshot)
    pod = info("p", cpu="4", requests={GPU: "2"})
    old = None if before is None else make_node(**before)
    action = A.ADD if before is None else A.UPDATE_NODE_ALLOCATABLE
    assert ask(fit, action, pod, old, make_node(**after)) is QueueingHint.when(helps)


def test_without_a_class_a_node_must_have_the_resource_itself() -> None:
    fit = NodeResourcesFit(NodeResourcesFitArgs())
    fit.read_snapshots(cluster_of(make_class("other")).snapshot)
    pod = info("p", requests={GPU: "1"})
    assert ask(fit, A.ADD, pod, None, make_node()) is QueueingHint.SKIP


def test_until_the_plugin_can_read_device_classes_a_node_must_have_the_resource_itself() -> None:
    fit = NodeResourcesFit(NodeResourcesFitArgs())
    pod = info("p", requests={GPU: "1"})
    assert ask(fit, A.ADD, pod, None, make_node()) is QueueingHint.SKIP
    assert ask(fit, A.ADD, pod, None, make_node(allocatable={GPU: "1"})) is QueueingHint.QUEUE
