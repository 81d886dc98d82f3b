"""DynamicResources: pods without claims, gated pods, and the free devices of nodes."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from stowage.api.objects.device import ResourceClaim
from stowage.api.objects.pod import PodResourceClaim, PodResourceClaimStatus, PodStatus
from stowage.api.status import Code
from stowage.api.values.duration import Duration
from stowage.engine.scheduling import Failed, Scheduled
from stowage.framework import CycleState, Diagnosis
from stowage.plugins.dynamic_resources import DynamicResources, DynamicResourcesArgs
from stowage.state import make_pod_info
from tests.support.builders import make_node, make_pod
from tests.support.device_builders import (
    allocated,
    device,
    make_claim,
    make_class,
    make_slice,
    pod_with_claims,
    request,
)
from tests.support.mirrored_cluster import MirroredCluster, existing_nodes
from tests.unit.plugins.device_cluster import cluster_of, framework_for, reason, schedule
from tests.unit.plugins.single_plugin import pre_filter

MODEL = "gpu.example.com/model"
PLUGIN = DynamicResources(DynamicResourcesArgs())


def test_a_pod_without_claims_passes_with_equal_scores() -> None:
    cluster = MirroredCluster([make_node("n0"), make_node("n1")])
    pod = make_pod("p")
    assert PLUGIN.pre_enqueue(cluster.info(pod)).is_success
    assert pre_filter(PLUGIN, cluster, pod).status.is_skip
    nodes = existing_nodes(cluster.snapshot())
    assert PLUGIN.score(CycleState(), cluster.info(pod), nodes).tolist() == [0, 0]


def test_post_filter_has_nothing_to_deallocate() -> None:
    cluster = MirroredCluster([make_node("n0")])
    pod, snapshot, state = cluster.info(make_pod("p")), cluster.snapshot(), CycleState()
    status, node_name = PLUGIN.post_filter(state, pod, snapshot, Diagnosis(1))
    assert (status.code, status.message, node_name) == (Code.ERROR, "not found", None)
    PLUGIN.pre_filter(state, pod, snapshot)
    status, node_name = PLUGIN.post_filter(state, pod, snapshot, Diagnosis(1))
    assert (status.code, node_name) == (Code.UNSCHEDULABLE, None)
    assert status.message == "no new claims to deallocate"


def test_time_limits_have_a_least_value() -> None:
    errors = DynamicResourcesArgs(Duration(-1), Duration(0)).validate()
    assert [error.path for error in errors] == ["filterTimeout", "bindingTimeout"]


TEMPLATE = PodResourceClaim("gpu", resource_claim_template_name="t")


@pytest.mark.parametrize(
    ("entry", "statuses", "claims", "problem"),
    [
        (
            PodResourceClaim("gpu"),
            (),
            (),
            'pod "default/p", spec.resourceClaim "gpu": none of the supported fields are set',
        ),
        (TEMPLATE, (), (), 'pod "default/p": ResourceClaim not created yet'),
        (
            PodResourceClaim("gpu", "c"),
            (),
            (),
            'could not find ResourceClaim "default/c"',
        ),
        (
            TEMPLATE,
            (PodResourceClaimStatus("gpu", "c"),),
            (make_claim("c"),),
            "ResourceClaim default/c was not created for Pod default/p (Pod is not owner)",
        ),
    ],
    ids=["no field", "not generated", "missing", "not owned"],
)
def test_a_pod_whose_claims_are_not_there_is_gated(
    entry: PodResourceClaim,
    statuses: tuple[PodResourceClaimStatus, ...],
    claims: tuple[ResourceClaim, ...],
    problem: str,
) -> None:
    cache = cluster_of(*claims)
    pod = replace(
        make_pod("p", resource_claims=(entry,)), status=PodStatus(resource_claim_statuses=statuses)
    )
    status = framework_for(cache).run_pre_enqueue(make_pod_info(pod, cache.classes))
    assert (status.code, status.message) == (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, problem)


def test_a_claim_that_is_being_deleted_gates_its_pod() -> None:
    claim = make_claim("c")
    meta = replace(claim.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    cache = cluster_of(replace(claim, metadata=meta))
    status = framework_for(cache).run_pre_enqueue(
        make_pod_info(pod_with_claims("p", "c"), cache.classes)
    )
    assert status.message == 'resourceclaim "c" is being deleted'


def test_an_entry_that_needs_no_claim_is_skipped() -> None:
    cache = cluster_of(make_node("n"))
    status = PodStatus(resource_claim_statuses=(PodResourceClaimStatus("gpu"),))
    pod = replace(make_pod("p", resource_claims=(TEMPLATE,)), status=status)
    state = CycleState()
    assert getattr(schedule(cache, pod, state), "node_name", "") == "n"
    assert state.skip_filter == {"DynamicResources"}


def test_a_pod_goes_to_the_node_with_a_free_device() -> None:
    cache = cluster_of(
        make_node("a"),
        make_node("b"),
        make_class(),
        make_slice("a", ["gpu-0"]),
        make_slice("b", ["gpu-0"]),
        make_claim("c"),
        allocated(make_claim("other"), "a", "gpu-0"),
    )
    outcome = schedule(cache, pod_with_claims("p", "c"))
    assert getattr(outcome, "node_name", "") == "b"


def test_a_claim_in_flight_is_not_allocated_again() -> None:
    cache = cluster_of(make_node("a"), make_class(), make_slice("a", ["gpu-0"]), make_claim("c"))
    state, pod = CycleState(), pod_with_claims("p", "c")
    framework, info = framework_for(cache), make_pod_info(pod, cache.classes)
    snapshot = cache.snapshot()
    framework.run_pre_filter(state, info, snapshot)
    framework.run_filter(state, info, snapshot)
    (plan,) = framework.run_reserve(state, info, "a").plans.values()
    cache.begin_allocations(plan.allocations, "uid-p")
    text = "resource claim default/c is in the process of being allocated"
    assert text in reason(schedule(cache, pod_with_claims("q", "c")))
    cache.validate()
    cache.end_allocations([each.claim_uid for each in plan.allocations])
    assert getattr(schedule(cache, pod_with_claims("q", "c")), "node_name", "") == "a"


def test_a_class_that_does_not_exist_is_named() -> None:
    cache = cluster_of(make_node("a"), make_claim("c"))
    text = "request r: device class gpu does not exist"
    assert text in reason(schedule(cache, pod_with_claims("p", "c")))


def test_a_failing_selector_ends_the_attempt_only_where_the_device_is_free() -> None:
    objects = (
        make_node("a"),
        make_class(expression='device.attributes["gpu.example.com"].nosuch == 1'),
        make_slice("a", ["gpu-0"]),
        make_claim("c"),
    )
    failed = schedule(cluster_of(*objects), pod_with_claims("p", "c"))
    assert isinstance(failed, Failed)
    prefix = 'running "DynamicResources" filter plugin: class gpu: selector #0: CEL runtime error:'
    assert failed.status.message.startswith(prefix)
    cache = cluster_of(*objects, allocated(make_claim("other"), "a", "gpu-0"))
    assert "cannot allocate all claims" in reason(schedule(cache, pod_with_claims("p", "c")))


def test_an_invalid_node_selector_is_named_with_its_slice() -> None:
    wrong = {"matchExpressions": [{"key": "zone", "operator": "Near", "values": ["a"]}]}
    unusable = make_slice("b", ["gpu-1"], nodeSelector={"nodeSelectorTerms": [wrong]})
    objects = (make_node("a"), make_class(), make_slice("a", ["gpu-0"]), make_claim("c"))
    failed = schedule(cluster_of(*objects, unusable), pod_with_claims("p", "c"))
    assert isinstance(failed, Failed)
    assert failed.status.message.startswith(
        'running "DynamicResources" filter plugin: gather pool information: '
        "failed to perform node selection for slice b-slice: "
    )


@pytest.mark.parametrize(("names", "fits"), [(["gpu-0"], False), (["gpu-0", "gpu-1"], True)])
def test_a_claim_with_admin_access_gets_no_device_twice(names: list[str], fits: bool) -> None:
    requests = (request(name, adminAccess=True) for name in ("r", "s"))
    claim = make_claim("c", *requests, constraints=[{"matchAttribute": MODEL}])
    devices = [device(name, model="m") for name in names]
    cache = cluster_of(make_node("a"), make_class(), make_slice("a", devices), claim)
    assert isinstance(schedule(cache, pod_with_claims("p", "c")), Scheduled) is fits


def test_two_requests_of_a_claim_for_all_devices_exclude_each_other_although_for_admins() -> None:
    everything = {"adminAccess": True, "allocationMode": "All", "count": 0}
    for names, fits in ((["r"], True), (["r", "s"], False)):
        claim = make_claim("c", *(request(name, **everything) for name in names))
        devices = [device("gpu-0"), device("gpu-1")]
        cache = cluster_of(make_node("a"), make_class(), make_slice("a", devices), claim)
        assert isinstance(schedule(cache, pod_with_claims("p", "c")), Scheduled) is fits
