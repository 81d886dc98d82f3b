"""A live cluster follows the events of watches."""

from __future__ import annotations

import msgspec
import pytest

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.api.events import (
    AssignedPodGone,
    AssignedPodSeen,
    CustomObjectGone,
    CustomObjectSeen,
    Event,
    NodeGone,
    NodeSeen,
    PendingPodGone,
    PendingPodSeen,
)
from stowage.api.objects.device import ResourceClaimTemplate
from stowage.api.reflected_kinds import CLAIM_TEMPLATE_RESOURCE, PRIORITY_CLASS_RESOURCE
from stowage.console.answers.answer import InvalidQuestion
from stowage.console.answers.cluster_map import cluster_map
from stowage.console.answers.manifests import check_manifests
from stowage.console.answers.pod_answer import pod_answer
from stowage.console.answers.what_if_answer import Changes, what_if_answer
from stowage.console.clusters.live import LiveCluster
from stowage.console.clusters.source import NotReady, SourceName
from stowage.console.decisions.history import OBSERVED, DecisionHistory
from tests.support.builders import make_node, make_pod
from tests.support.consoles import START_S, default_frameworks, live_cluster

EVENTS: list[Event] = [
    NodeSeen(make_node("a", cpu="2")),
    NodeSeen(make_node("b", cpu="4")),
    PendingPodSeen(make_pod("p", cpu="1")),
    PendingPodSeen(make_pod("q", cpu="3")),
    AssignedPodSeen(make_pod("p", cpu="1", node="a")),
    PendingPodGone("default", "p", "uid-p"),
    AssignedPodSeen(make_pod("r", cpu="2", node="b")),
    NodeSeen(make_node("c", cpu="1")),
    NodeGone("c"),
]


def unloaded(*, is_live: bool = True) -> LiveCluster:
    name = SourceName("cluster", "test", "")
    history = DecisionHistory(OBSERVED)
    return LiveCluster(name, default_frameworks(), history, lambda: START_S, is_live=is_live)


def test_followed_events_give_the_cluster_that_a_fresh_list_gives() -> None:
    followed = live_cluster()
    for event in EVENTS:
        followed.apply([event])
    listed = unloaded()
    listed.apply(EVENTS)
    listed.load()
    one, other = (cluster_map(each.moment(START_S)) for each in (followed, listed))
    assert msgspec.structs.replace(one, version=0) == msgspec.structs.replace(other, version=0)
    answers = [pod_answer(each.moment(START_S), "default/q") for each in (followed, listed)]
    assert answers[0].table == answers[1].table


def test_an_answer_says_whether_it_is_about_files() -> None:
    for is_live, basis in ((True, "the cluster as it is now"), (False, "the cluster in the files")):
        cluster = unloaded(is_live=is_live)
        cluster.apply(EVENTS)
        cluster.load()
        answer = pod_answer(cluster.moment(START_S), "default/q")
        assert answer.basis == f"evaluated against {basis}"


async def test_no_question_is_answered_before_the_first_lists() -> None:
    cluster = unloaded()
    cluster.apply(EVENTS)
    with pytest.raises(NotReady, match="still being read"):
        await cluster.at(None)
    cluster.load()
    assert (await cluster.at(None)).snapshot.num_nodes == 2


def test_the_first_lists_show_no_decisions() -> None:
    cluster = unloaded()
    cluster.apply(EVENTS[:4])
    cluster.load()
    assert len(cluster.history) == 0
    cluster.apply(EVENTS[4:6])
    assert [each.pod for each in cluster.history.newest(9)] == ["default/p"]


async def test_a_live_cluster_has_no_other_times() -> None:
    with pytest.raises(InvalidQuestion, match="only a recording has other times"):
        await live_cluster().at(START_S)


def test_a_pod_of_an_unknown_scheduler_is_judged_by_the_first_profile() -> None:
    cluster = live_cluster(make_node("a", cpu="2"), make_pod("old", cpu="1"))
    cluster.apply([PendingPodSeen(make_pod("p", cpu="1", scheduler_name="other"))])
    answer = pod_answer(cluster.moment(START_S), "default/p")
    assert answer.profile == "default-scheduler"
    assert "no profile has the scheduler name other" in answer.notes[0]
    assert pod_answer(cluster.moment(START_S), "default/old").decision.chosen == "a"


def test_pods_that_came_and_went_leave_nothing() -> None:
    cluster = live_cluster(make_node("a"))
    for number in range(50):
        name = f"p{number}"
        cluster.apply([AssignedPodSeen(make_pod(name, node="a"))])
        cluster.apply([AssignedPodGone("default", name, f"uid-{name}")])
    objects = cluster.moment(START_S).loaded.objects
    assert objects.pods() == []
    assert not objects.pods_by_node().changed


def test_objects_that_cannot_be_used_are_noted() -> None:
    cluster = unloaded()
    objects = ClusterObjects()
    objects.add(make_pod("bad", cpu="much"))
    cluster.load(objects)
    assert "much" in cluster.notes[0]


def _template_seen(device_class: str) -> CustomObjectSeen:
    request = {"name": "gpu", "exactly": {"deviceClassName": device_class}}
    template = {
        "metadata": {"name": "gpu", "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }
    return CustomObjectSeen(CLAIM_TEMPLATE_RESOURCE, template)


USES_TEMPLATE = """
kind: Pod
metadata: {name: new}
spec:
  containers: [{name: c}]
  resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
"""


def test_a_what_if_knows_the_claim_templates_of_the_cluster_until_they_are_deleted() -> None:
    cluster = live_cluster(make_node("a", cpu="2"))
    changes = Changes(manifests=USES_TEMPLATE)
    cluster.apply([_template_seen("gpu.example.com")])
    objects = cluster.moment(START_S).loaded.objects
    assert check_manifests(USES_TEMPLATE, objects).errors == []
    (pending,) = what_if_answer(cluster.moment(START_S), changes, "").pending
    assert (pending.pod, "gpu.example.com" in pending.message) == ("default/new", True)
    cluster.apply([CustomObjectGone(CLAIM_TEMPLATE_RESOURCE, "default", "gpu")])
    (error,) = check_manifests(USES_TEMPLATE, objects).errors
    assert "ResourceClaimTemplate" in error.message


def test_a_what_if_knows_the_priority_classes_of_the_cluster() -> None:
    cluster = live_cluster(make_node("a", cpu="2"))
    manifest = "{kind: Pod, metadata: {name: new}, spec: {priorityClassName: shop, containers: []}}"
    content = {"metadata": {"name": "shop"}, "value": 7}
    cluster.apply([CustomObjectSeen(PRIORITY_CLASS_RESOURCE, content)])
    objects = cluster.moment(START_S).loaded.objects
    assert check_manifests(manifest, objects).errors == []
    cluster.apply([CustomObjectGone(PRIORITY_CLASS_RESOURCE, "", "shop")])
    (error,) = check_manifests(manifest, objects).errors
    assert "priorityClassName: shop" in error.message


def test_an_invalid_claim_template_is_left_out() -> None:
    cluster = live_cluster()
    content = {"metadata": {"name": "gpu", "namespace": "default"}, "spec": {"spec": 3}}
    cluster.apply([CustomObjectSeen(CLAIM_TEMPLATE_RESOURCE, content)])
    objects = cluster.moment(START_S).loaded.objects
    assert objects.of_kind(ResourceClaimTemplate) == []
    assert len(objects.invalid) == 1
