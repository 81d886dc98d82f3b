"""Answers about devices that have to become ready in time depend on the wall clock."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from stowage.analysis.capacity import capacity
from stowage.analysis.explain_node import explain_node
from stowage.analysis.explain_pod import explain_pod
from stowage.analysis.loaded_cluster import LoadedCluster
from stowage.analysis.virtual_cluster import VirtualCluster
from stowage.api.objects.device import ResourceClaim
from tests.support.builders import make_node
from tests.support.clusters import loaded_cluster, nodes_of_pods
from tests.support.device_builders import allocated, make_claim, make_class, pod_with_claims

TOO_LATE = "resourceclaim not available on the node"
IN_TIME_S, LATE_S = 1_000_599.0, 1_000_601.0
"""Before and after the time limit of the device, which is ten minutes."""


def unready_claim() -> ResourceClaim:
    """A claim whose device is not ready; allocated a million seconds after the epoch."""
    claim = allocated(make_claim("c"), "a", "gpu-0", binding_conditions=("ready",))
    allocation = claim.status.allocation
    assert allocation is not None
    allocation = replace(allocation, allocation_timestamp="1970-01-12T13:46:40Z")
    return replace(claim, status=replace(claim.status, allocation=allocation))


def cluster_at(unix_s: float) -> LoadedCluster:
    pod = pod_with_claims("p", "c")
    return loaded_cluster(make_node("a"), make_class(), unready_claim(), pod, unix_s=unix_s)


def test_a_pod_fits_until_its_device_is_late() -> None:
    assert explain_pod(cluster_at(IN_TIME_S), "default/p").decision.chosen == "a"
    late = explain_pod(cluster_at(LATE_S), "default/p").decision
    assert (late.outcome, late.reason_counts) == ("Unschedulable", {TOO_LATE: 1})
    (verdict,) = late.nodes
    assert verdict.rejected_by is not None
    assert verdict.rejected_by.reasons == (TOO_LATE,)


def test_a_node_rejects_the_pod_from_then_on() -> None:
    assert explain_node(cluster_at(IN_TIME_S), "a").fits == ("default/p",)
    (rejected,) = explain_node(cluster_at(LATE_S), "a").rejects
    assert [each.reasons for each in rejected.rejected_by] == [(TOO_LATE,)]


@pytest.mark.parametrize(("unix_s", "fitting"), [(IN_TIME_S, 1), (LATE_S, 0)])
def test_capacity_counts_no_pod_whose_device_is_late(unix_s: float, fitting: int) -> None:
    pod = pod_with_claims("more", "c")
    answer = capacity(cluster_at(unix_s), pod, limit=1, group_by="zone")
    assert answer.fits == fitting


@pytest.mark.parametrize("passed_s", [0.0, 5.0])
def test_the_clock_of_a_cluster_in_memory_goes_on(passed_s: float) -> None:
    """The pod is tried when the time has passed: one second is left at the beginning."""
    cluster = VirtualCluster(cluster_at(IN_TIME_S), 10.0)
    cluster.now += passed_s
    cluster.settle()
    assert nodes_of_pods(cluster) == {"default/p": "" if passed_s else "a"}
