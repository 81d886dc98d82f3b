"""NodeLabel: nodes must have labels, or lack them, whatever their values."""

from __future__ import annotations

import pytest

from stowage.api.cluster_events import QueueingHint
from stowage.api.status import Code
from stowage.framework import CycleState
from stowage.plugins.node_label import NodeLabel, NodeLabelArgs
from tests.support.builders import make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster, existing_nodes
from tests.unit.plugins.single_plugin import refused

NODES = [
    make_node("zoned", labels={"zone": "a"}),
    make_node("retiring", labels={"zone": "", "retiring": "2018-12-31"}),
    make_node("bare"),
]


@pytest.mark.parametrize(
    ("args", "want"),
    [
        (NodeLabelArgs(), []),
        (NodeLabelArgs(present_labels=("zone",)), ["bare"]),
        (NodeLabelArgs(present_labels=("zone", "retiring")), ["zoned", "bare"]),
        (NodeLabelArgs(absent_labels=("retiring",)), ["retiring"]),
        (
            NodeLabelArgs(present_labels=("zone",), absent_labels=("retiring",)),
            ["retiring", "bare"],
        ),
        (NodeLabelArgs(present_labels=("unknown",)), ["zoned", "retiring", "bare"]),
        (NodeLabelArgs(absent_labels=("unknown",)), []),
    ],
)
def test_nodes_without_the_wanted_labels_are_rejected(args: NodeLabelArgs, want: list[str]) -> None:
    found = refused(NodeLabel(args), MirroredCluster(NODES), make_pod("p"))
    assert list(found) == want
    for status in found.values():
        assert status.reasons == ("node(s) didn't have the requested labels",)
        assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE


@pytest.mark.parametrize(
    ("present", "absent", "want"),
    [
        ((), (), [0, 0, 0]),
        (("zone",), (), [100, 100, 0]),
        ((), ("retiring",), [100, 0, 100]),
        (("zone",), ("retiring",), [100, 50, 50]),
        (("zone", "a", "b"), (), [33, 33, 0]),
    ],
)
def test_the_share_of_preferences_that_a_node_meets_is_its_score(
    present: tuple[str, ...], absent: tuple[str, ...], want: list[int]
) -> None:
    args = NodeLabelArgs(present_labels_preference=present, absent_labels_preference=absent)
    cluster = MirroredCluster(NODES)
    nodes = existing_nodes(cluster.snapshot())
    scores = NodeLabel(args).score(CycleState(), cluster.info(make_pod("p")), nodes)
    assert scores.tolist() == want


def test_wrong_arguments_are_named() -> None:
    args = NodeLabelArgs(("a", "b c"), ("a",), ("x",), ("y", "x"))
    assert [(error.path, error.value) for error in args.validate()] == [
        ("presentLabels[1]", "b c"),
        ("absentLabels[0]", "a"),
        ("absentLabelsPreference[1]", "x"),
    ]


def test_only_a_node_that_gets_the_right_labels_queues_a_pod() -> None:
    pod = MirroredCluster().info(make_pod("p"))
    hint = NodeLabel(NodeLabelArgs(("zone",), ("retiring",))).after_node_change
    zoned, retiring, bare = NODES
    assert hint(pod, None, zoned) is QueueingHint.QUEUE
    assert hint(pod, bare, zoned) is QueueingHint.QUEUE
    assert hint(pod, retiring, zoned) is QueueingHint.QUEUE
    assert hint(pod, zoned, zoned) is QueueingHint.SKIP
    assert hint(pod, None, bare) is QueueingHint.SKIP
    assert hint(pod, zoned, retiring) is QueueingHint.SKIP
