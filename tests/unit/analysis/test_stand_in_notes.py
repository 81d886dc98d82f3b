"""Answers count the pods whose scheduler name no profile has, and name the profile that decides."""

from __future__ import annotations

from msgspec.structs import replace

from stowage.analysis.capacity import capacity
from stowage.analysis.cluster_objects import ClusterObjects
from stowage.analysis.compact import compact
from stowage.analysis.gang_capacity import GangModel, gang_capacity
from stowage.analysis.loaded_cluster import LoadedCluster
from stowage.analysis.what_if import Question, what_if
from stowage.api.objects.meta import ApiStruct
from stowage.api.objects.pod import Pod
from tests.stories.gang_driver import make_group, make_member
from tests.support.builders import ZONE, make_node, make_pod, owned_by
from tests.support.clusters import loaded_cluster

OWNER = owned_by("ReplicaSet", "web", "rs")


def of_volcano(name: str, **fields: object) -> Pod:
    return make_pod(name, scheduler_name="volcano", cpu="1", **fields)  # type: ignore[arg-type]


def cluster(*objects: ApiStruct) -> LoadedCluster:
    profile = {"schedulerName": "default-scheduler"}
    return loaded_cluster(make_node("a", cpu="4"), *objects, profile=profile)


def note(pods: str) -> tuple[str, ...]:
    name = "default-scheduler"
    return (
        f"no profile has the scheduler name volcano of {pods}: the profile {name} decides instead",
    )


def test_a_what_if_counts_the_pods_that_it_decides_about() -> None:
    loaded = cluster(of_volcano("runs", node="a"), of_volcano("waits"))
    assert what_if(loaded, Question()).notes == note("1 pod")
    created = ClusterObjects()
    for name in ("b", "c"):
        created.add(of_volcano(name))
    created.add(make_pod("d", cpu="9"))
    loaded = cluster(of_volcano("waits"))
    assert what_if(loaded, Question(objects=created)).notes == note("3 pods")


def test_a_what_if_about_pods_of_the_profiles_has_no_note() -> None:
    assert what_if(cluster(make_pod("p"), of_volcano("runs", node="a")), Question()).notes == ()


def test_compact_counts_all_pods() -> None:
    loaded = cluster(of_volcano("runs", node="a", owner=OWNER), make_pod("p", node="a"))
    assert compact(loaded).notes == note("1 pod")


def test_capacity_names_the_scheduler_of_its_pod() -> None:
    loaded = cluster(of_volcano("waits"))
    answer = capacity(loaded, of_volcano("p"), limit=9, group_by=ZONE)
    assert answer.notes == note("1 pod")
    assert capacity(loaded, make_pod("p"), limit=9, group_by=ZONE).notes == ()


def test_capacity_of_gangs_names_the_scheduler_of_its_pods() -> None:
    loaded = cluster(of_volcano("waits"))
    member = make_member("m")
    member = replace(member, spec=replace(member.spec, scheduler_name="volcano"))
    answer = gang_capacity(loaded, GangModel(make_group(min_count=1), (member,)), limit=1)
    assert answer.notes == note("1 pod")
