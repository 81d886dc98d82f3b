"""A node's explanation shows what is on it, what is free, and whom it rejects."""

from __future__ import annotations

import pytest

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.analysis.explain_node import explain_node
from stowage.analysis.explain_pod import NotInCluster
from stowage.analysis.loaded_cluster import load_cluster
from stowage.api.objects.node import Taint
from tests.support.builders import make_node, make_pod
from tests.support.clusters import loaded_cluster
from tests.support.plugins.small_plugins import Raises, framework_of


def test_a_node_shows_its_pods_and_what_is_free() -> None:
    taint = Taint(key="gpu", effect="NoSchedule")
    node = make_node("n", cpu="4", memory="8Gi", pods=10, taints=[taint], unschedulable=True)
    cluster = loaded_cluster(
        node,
        make_pod("minor", cpu="500m", node="n"),
        make_pod("major", memory="1Gi", node="n", priority=5),
    )
    explained = explain_node(cluster, "n")
    assert explained.pods == ("default/major", "default/minor")
    assert explained.free == {"cpu": "3500m", "memory": "7Gi", "pods": "8"}
    assert explained.allocatable == {"cpu": "4", "memory": "8Gi", "pods": "10"}
    assert explained.taints == ("gpu:NoSchedule",)
    assert explained.unschedulable


def test_a_node_lists_the_pending_pods_that_it_rejects_and_why() -> None:
    cluster = loaded_cluster(
        make_node("n", cpu="1"),
        make_node("other"),
        make_pod("fits", cpu="1"),
        make_pod("big", cpu="2"),
        make_pod("pinned", node_selector={"kubernetes.io/hostname": "other"}),
    )
    explained = explain_node(cluster, "n")
    assert explained.fits == ("default/fits",)
    rejected = {each.pod: [by.plugin for by in each.rejected_by] for each in explained.rejects}
    assert rejected == {"default/big": ["NodeResourcesFit"], "default/pinned": ["NodeAffinity"]}


def test_a_pod_that_is_being_deleted_waits_for_no_node() -> None:
    leaving = [
        make_pod(name, cpu=cpu, terminating=True) for name, cpu in (("fits", "1"), ("big", "9"))
    ]
    explained = explain_node(loaded_cluster(make_node("n"), *leaving), "n")
    assert (explained.fits, explained.rejects) == ((), ())


def test_an_unknown_node_is_named() -> None:
    with pytest.raises(NotInCluster, match="there is no node n"):
        explain_node(loaded_cluster(), "n")


def test_a_pod_whose_filter_plugin_fails_is_listed_with_the_error() -> None:
    objects = ClusterObjects()
    pods = [make_pod(name, scheduler_name="test") for name in ("p", "q")]
    for each in (make_node("n"), *pods):
        objects.add(each)
    cluster = load_cluster(objects, [framework_of(Raises())])
    rejects = explain_node(cluster, "n").rejects
    assert [each.pod for each in rejects] == ["default/p", "default/q"]
    (status,) = rejects[0].rejected_by
    assert (status.plugin, status.code) == ("Raises", "Error")
    assert status.reasons == ('running "Raises" filter plugin: the disk is on fire',)
