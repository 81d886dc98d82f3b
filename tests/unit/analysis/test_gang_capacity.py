"""Whole gangs are counted by the engine, and what-ifs of gangs are all or nothing."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.analysis.gang_capacity import GangCapacityAnswer, GangModel, gang_capacity, gang_of
from stowage.analysis.what_if import Question, WhatIfAnswer, what_if
from stowage.analysis.workload_pods import InvalidManifest, objects_of_manifests
from stowage.api.objects.meta import ApiStruct
from stowage.api.objects.pod_groups import CoschedulingPodGroup, PodGroup
from tests.stories.gang_driver import make_group, make_member
from tests.support.builders import ZONE, make_node, make_pod
from tests.support.clusters import loaded_cluster

Json = dict[str, Any]


def group(min_count: int = 3, **spec: Any) -> Json:
    policy = {"gang": {"minCount": min_count}}
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "g"},
        "spec": {"schedulingPolicy": policy, **spec},
    }


def pod_spec(cpu: str = "1", member_of: str = "g") -> Json:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {
        "schedulerName": "stowage",
        "schedulingGroup": {"podGroupName": member_of},
        "containers": [container],
    }


def job(parallelism: int, **fields: Any) -> Json:
    template = {"spec": pod_spec(**fields)}
    spec = {"parallelism": parallelism, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": spec}


def pod(name: str = "p", **fields: Any) -> Json:
    return {"kind": "Pod", "metadata": {"name": name}, "spec": pod_spec(**fields)}


def model(*items: Json, cluster: ClusterObjects | None = None) -> GangModel:
    known = cluster or ClusterObjects()
    found = gang_of(objects_of_manifests(items, known), known)
    assert found is not None
    return found


def count(gang: GangModel, *objects: ApiStruct, limit: int = 100) -> GangCapacityAnswer:
    cluster = loaded_cluster(*objects)
    answer = gang_capacity(cluster, gang, limit)
    cluster.engine.validate()
    return answer


def nodes(number: int, cpu: str = "2", **fields: Any) -> list[ApiStruct]:
    return [make_node(f"n{index}", cpu=cpu, **fields) for index in range(number)]


def ask(*items: Json, on: list[ApiStruct]) -> WhatIfAnswer:
    cluster = loaded_cluster(*on)
    return what_if(cluster, Question(objects=objects_of_manifests(items, cluster.objects)))


def test_only_whole_gangs_count_and_the_next_one_says_what_it_lacks() -> None:
    answer = count(model(group(3), job(3)), *nodes(4))
    assert (answer.fits, answer.is_limited, answer.num_members) == (2, False, 3)
    assert sum(answer.per_node.values()) == 6
    assert answer.next_gang is not None
    assert answer.next_gang.text.startswith("2 of 3 members fit; default/j-2-more-2 does not: ")
    assert answer.next_gang.basis == "evaluated beside the gangs that fit"


def test_one_pod_stands_for_all_members() -> None:
    assert count(model(group(3), pod()), *nodes(4)).fits == 2


def test_the_group_may_be_in_the_cluster_and_is_not_changed() -> None:
    known = ClusterObjects()
    known.add(make_group("g", 2))
    gang = model(pod(), cluster=known)
    running = [make_member(f"m{index}", node="n0") for index in range(2)]
    assert count(gang, *nodes(3), make_group("g", 2), *running).fits == 2


def test_each_gang_goes_to_one_domain() -> None:
    keyed = group(2, schedulingConstraints={"topology": [{"key": ZONE}]})
    on = [make_node("a", cpu="3", zone="a"), make_node("b", cpu="5", zone="b")]
    answer = count(model(keyed, pod()), *on)
    assert (answer.fits, answer.per_domain, answer.topology_key) == (3, {"a": 1, "b": 2}, ZONE)
    assert answer.next_gang is not None
    assert [each.fits for each in answer.next_gang.domains] == [1, 1]


def test_the_count_of_gangs_ends_at_the_limit() -> None:
    answer = count(model(group(1), pod()), *nodes(4), limit=3)
    assert (answer.fits, answer.is_limited, answer.next_gang) == (3, True, None)


def test_a_gang_is_counted_without_preemption() -> None:
    low = make_pod("low", cpu="2", node="n0", priority=-5)
    gang = model(group(2), pod())
    assert count(gang, *nodes(1), low).fits == 0


def test_groups_of_the_coscheduling_plugin_are_counted() -> None:
    labelled = {
        **pod(),
        "metadata": {"name": "p", "labels": {"scheduling.x-k8s.io/pod-group": "g"}},
    }
    del labelled["spec"]["schedulingGroup"]
    custom = {**group(), "apiVersion": "scheduling.x-k8s.io/v1alpha1", "spec": {"minMember": 2}}
    gang = model(custom, labelled)
    assert isinstance(gang.group, CoschedulingPodGroup)
    assert count(gang, *nodes(2)).fits == 2


@pytest.mark.parametrize(
    ("items", "text"),
    [
        ([pod()], "Pod p: its pod group: default/g .expected a known PodGroup"),
        ([group(3), job(2)], "PodGroup g: it needs 3 pods, the manifests have 2"),
        ([group(1), pod(), pod("q", member_of="h")], "they name default/g, default/h"),
    ],
)
def test_manifests_that_describe_no_gang_are_refused(items: list[Json], text: str) -> None:
    with pytest.raises(InvalidManifest, match=text):
        model(*items)


def test_pods_without_a_group_are_no_gang() -> None:
    plain = pod()
    del plain["spec"]["schedulingGroup"]
    assert gang_of(objects_of_manifests([plain], ClusterObjects()), ClusterObjects()) is None


def test_a_group_in_a_manifest_gets_the_priority_of_its_class() -> None:
    high = {"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 7}
    made = objects_of_manifests([high, group(1, priorityClassName="high")], ClusterObjects())
    (found,) = made.of_kind(PodGroup)
    assert found.priority == 7
    with pytest.raises(InvalidManifest, match=r"PodGroup g: spec\.priorityClassName: none"):
        objects_of_manifests([group(1, priorityClassName="none")], ClusterObjects())


def test_what_if_places_all_members_of_a_gang_or_none() -> None:
    lacks = ask(group(5), job(5), on=nodes(2))
    assert lacks.placed == ()
    (about,) = lacks.groups
    assert (about.group, about.outcome, about.num_scheduled) == ("default/g", "Unschedulable", 0)
    assert about.text.startswith("4 of 5 members fit; default/j-4 does not: 2 nodes Insufficient")
    assert about.basis == "evaluated after the changes"
    fits = ask(group(4), job(4), on=nodes(2))
    assert len(fits.placed) == 4
    assert [each.text for each in fits.groups] == ["4 of 4 members are scheduled"]


def test_what_if_of_bare_members_without_a_quorum_places_none() -> None:
    answer = ask(group(3), pod("a"), pod("b"), on=nodes(2))
    assert [each.pod for each in answer.pending] == ["default/a", "default/b"]
    assert [each.text for each in answer.groups] == ["2 of 3 members exist"]


def test_what_if_preempts_for_a_gang_only_if_it_fits_then() -> None:
    low = [make_pod(f"low{index}", cpu="2", node=f"n{index}", priority=-5) for index in range(2)]
    fits = ask(group(4), job(4), on=[*nodes(2), *low])
    assert (len(fits.placed), len(fits.preempted)) == (4, 2)
    lacks = ask(group(5), job(5), on=[*nodes(2), *low])
    assert (lacks.placed, lacks.preempted) == ((), ())


def test_the_next_gang_says_nothing_about_a_preemption_that_is_not_tried() -> None:
    about = count(model(group(3), pod(cpu="9")), *nodes(2)).next_gang
    assert about is not None
    assert about.decision is not None
    assert about.decision.message == "0/2 nodes are available: 2 Insufficient cpu."
    assert about.decision.waits_for == ()
    assert b"preemption" not in msgspec.json.encode(about)
