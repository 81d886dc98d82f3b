"""NodePreferAvoidPods: nodes with an annotation that asks to avoid pods of some controllers."""

from __future__ import annotations

import json

import msgspec
import pytest

from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod
from stowage.framework import CycleState, NoArgs
from stowage.plugins.node_prefer_avoid_pods import (
    ANNOTATION,
    AvoidanceRequests,
    NodePreferAvoidPods,
    avoided_controllers,
)
from tests.support.builders import make_node, make_pod, owned_by
from tests.support.mirrored_cluster import MirroredCluster, existing_nodes

WEB = ("ReplicaSet", "web-uid")
OLD_WEB = ("ReplicationController", "web-uid")
DB = ("StatefulSet", "db-uid")


def avoiding(*controllers: tuple[str, str]) -> str:
    entries = [
        {
            "podSignature": {
                "podController": {
                    "apiVersion": "apps/v1",
                    "kind": kind,
                    "name": "any",
                    "uid": uid,
                    "controller": True,
                }
            },
            "evictionTime": "2026-01-01T00:00:00Z",
            "reason": "some reason",
            "message": "some message",
        }
        for kind, uid in controllers
    ]
    return json.dumps({"preferAvoidPods": entries})


def annotated(name: str, annotation: str | None) -> Node:
    node = make_node(name)
    annotations = {} if annotation is None else {ANNOTATION: annotation}
    metadata = msgspec.structs.replace(node.metadata, annotations=annotations)
    return msgspec.structs.replace(node, metadata=metadata)


def owned(kind: str, uid: str, *, controller: bool = True) -> Pod:
    return make_pod("p", owner=owned_by(kind, "any", uid, controller=controller))


def scores(cluster: MirroredCluster, plugin: NodePreferAvoidPods, pod: Pod) -> list[int]:
    nodes = existing_nodes(cluster.snapshot())
    found: list[int] = plugin.score(CycleState(), cluster.info(pod), nodes).tolist()
    return found


# Annotation of the first node, the pod, and the first node's score; a second node has none.
CASES: dict[str, tuple[str | None, Pod, int]] = {
    "a node that asks to avoid the ReplicaSet's pods gets 0 of 10 points": (
        avoiding(WEB),
        owned(*WEB),
        0,
    ),
    "a node that names the ReplicaSet among others gets 0 of 10 points": (
        avoiding(DB, WEB),
        owned(*WEB),
        0,
    ),
    "pods of a ReplicationController can be avoided too": (avoiding(OLD_WEB), owned(*OLD_WEB), 0),
    "kind and UID must both be the controller's": (avoiding(OLD_WEB), owned(*WEB), 100),
    "another UID is another controller": (avoiding(("ReplicaSet", "x")), owned(*WEB), 100),
    "pods of a StatefulSet cannot be avoided": (avoiding(DB), owned(*DB), 100),
    "an owner that is not the controller does not count": (
        avoiding(WEB),
        owned(*WEB, controller=False),
        100,
    ),
    "a pod without an owner cannot be avoided": (avoiding(WEB), make_pod("p"), 100),
    "without an annotation no pod is avoided": (None, owned(*WEB), 100),
    "an empty annotation avoids no pod": ("", owned(*WEB), 100),
    "an annotation of invalid JSON avoids no pod": ("{", owned(*WEB), 100),
    "an annotation of another structure avoids no pod": (
        '{"preferAvoidPods": "web"}',
        owned(*WEB),
        100,
    ),
    "an annotation nested too deep avoids no pod": ('{"x":' + "[" * 100_000, owned(*WEB), 100),
    "nulls are absent fields": (
        '{"preferAvoidPods": [null, {"podSignature": null}, {"podSignature": {}}]}',
        owned(*WEB),
        100,
    ),
}


@pytest.mark.parametrize(("annotation", "pod", "want"), CASES.values(), ids=CASES.keys())
def test_a_node_that_asks_to_avoid_the_pod_scores_nothing(
    annotation: str | None, pod: Pod, want: int
) -> None:
    cluster = MirroredCluster([annotated("n1", annotation), annotated("n2", None)])
    assert scores(cluster, NodePreferAvoidPods(NoArgs()), pod) == [want, 100]


def test_an_annotation_is_parsed_again_when_its_node_changes() -> None:
    cluster = MirroredCluster([annotated("n1", None), annotated("n2", avoiding(WEB))])
    plugin = NodePreferAvoidPods(NoArgs())
    assert scores(cluster, plugin, owned(*WEB)) == [100, 0]
    cluster.update_node(annotated("n1", avoiding(WEB)))
    assert scores(cluster, plugin, owned(*WEB)) == [0, 0]
    cluster.update_node(annotated("n2", avoiding(OLD_WEB)))
    assert scores(cluster, plugin, owned(*WEB)) == [0, 100]
    cluster.remove_node("n1")
    assert scores(cluster, plugin, owned(*WEB)) == [100]


def test_a_reused_row_does_not_keep_the_annotation_of_a_deleted_node() -> None:
    cluster = MirroredCluster([annotated("n1", avoiding(WEB))])
    plugin = NodePreferAvoidPods(NoArgs())
    assert scores(cluster, plugin, owned(*WEB)) == [0]
    cluster.remove_node("n1")
    cluster.update_node(annotated("n2", None))
    assert scores(cluster, plugin, owned(*WEB)) == [100]


def test_all_nodes_are_read_again_if_the_change_log_is_exceeded() -> None:
    cluster = MirroredCluster([annotated("n1", avoiding(WEB)), annotated("n2", None)])
    requests = AvoidanceRequests()
    assert requests.rows_avoiding(WEB, cluster.snapshot()) == {cluster.snapshot().row_of("n1")}
    cluster.update_node(annotated("n1", None))
    for index in range(10_000):
        cluster.update_node(annotated("n2", avoiding(("ReplicaSet", str(index)))))
    assert requests.rows_avoiding(WEB, cluster.snapshot()) == set()
    assert len(requests.rows_avoiding(("ReplicaSet", "9999"), cluster.snapshot())) == 1


def test_annotations_are_not_shared_between_clusters() -> None:
    plugin = NodePreferAvoidPods(NoArgs())
    one = MirroredCluster([annotated("n1", avoiding(WEB))])
    other = MirroredCluster([annotated("n1", None)])
    assert scores(one, plugin, owned(*WEB)) == [0]
    assert scores(other, plugin, owned(*WEB)) == [100]
    assert scores(one, plugin, owned(*WEB)) == [0]


def test_what_an_annotation_does_not_say_of_a_controller_is_empty() -> None:
    """``GetAvoidPodsFromNodeAnnotations`` of 1.12 decodes into empty strings."""
    entry = {"podSignature": {"podController": {"name": "web"}}}
    node = annotated("n", json.dumps({"preferAvoidPods": [entry, None, {}]}))
    assert avoided_controllers(node) == {("", "")}
