"""Explanations name the request for devices that fails, why, and changes that really help."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from stowage.analysis.devices.shortage import DeviceShortage, Why
from stowage.analysis.explain_node import explain_node
from stowage.analysis.explain_pod import explain_pod
from stowage.analysis.explanation import SchedulingExplanation
from stowage.api.objects.meta import ApiStruct
from stowage.api.objects.node import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from tests.support.builders import make_node
from tests.support.clusters import loaded_cluster
from tests.support.device_builders import (
    allocated,
    device,
    make_claim,
    make_class,
    make_slice,
    pod_with_claims,
    quantities,
    request,
)

TAINT = {"key": "broken", "effect": "NoSchedule"}
H100 = {"cel": {"expression": 'device.attributes["gpu.example.com"].model == "h100"'}}
POD = pod_with_claims("p", "c")


def explained(*objects: ApiStruct, pod: Any = POD) -> SchedulingExplanation:
    return explain_pod(loaded_cluster(*objects, pod), "default/p").decision


def only(decision: SchedulingExplanation) -> DeviceShortage:
    (shortage,) = decision.device_shortages
    return shortage


def on_one_node(*devices: Any, claim: Any = None, **slice_fields: Any) -> list[ApiStruct]:
    cluster = [make_node("n"), make_class(), make_slice("n", devices, **slice_fields)]
    return [*cluster, claim or make_claim("c")]


def memory(amount: str) -> dict[str, Any]:
    return {"capacity": quantities({"memory": amount})}


def misses(decision: SchedulingExplanation) -> list[str]:
    return [each.text for each in decision.near_misses]


def test_a_shortage_counts_the_devices_that_are_free() -> None:
    other = allocated(make_claim("other"), "n", "d0")
    objects = [*on_one_node("d0", "d1", claim=make_claim("c", request(count=2))), other]
    decision = explained(*objects)
    shortage = only(decision)
    assert (shortage.why, shortage.short_by, shortage.nodes) == (Why.IN_USE, 1, ("n",))
    assert shortage.subject == "claim default/c, request r (2 devices of gpu)"
    assert shortage.finding == "1 of 2 devices are free"
    assert misses(decision) == ["fits on node n if 1 more device of class gpu was free"]
    assert explained(*objects[:-1]).outcome == "Scheduled"


def test_a_selector_that_matches_nothing_shows_what_it_names() -> None:
    claim = make_claim("c", request(selectors=[H100]))
    a100s = [device(f"d{index}", model="a100") for index in range(8)]
    decision = explained(*on_one_node(*a100s, claim=claim))
    assert only(decision).finding == "selector matches 0 of 8: attribute model is a100"
    assert misses(decision) == [
        "fits on node n if 1 more device of class gpu that its selectors match was free",
        "fits on node n if the selector of request r matched (attribute model is a100)",
    ]
    assert explained(*on_one_node(device("d", model="h100"), claim=claim)).outcome == "Scheduled"


def test_a_class_that_selects_nothing_is_named() -> None:
    objects = [make_node("n"), make_class(expression="false"), make_slice("n", ["d"])]
    shortage = only(explained(*objects, make_claim("c")))
    assert (shortage.why, shortage.finding) == (Why.CLASS, "0 of 1 devices are of the class")


def test_a_node_without_devices_is_said_to_have_none() -> None:
    shortage = only(explained(make_node("n"), make_class(), make_claim("c")))
    assert (shortage.why, shortage.finding) == (Why.NO_DEVICES, "no devices")


def test_a_taint_that_is_not_tolerated_is_named() -> None:
    decision = explained(*on_one_node(device("d", taints=[TAINT])))
    assert only(decision).finding == "taints tolerated of 0 of 1 devices: broken:NoSchedule"
    assert "fits on node n if request r tolerated broken:NoSchedule" in misses(decision)
    tolerating = make_claim("c", request(tolerations=[{"key": "broken", "operator": "Exists"}]))
    changed = on_one_node(device("d", taints=[TAINT]), claim=tolerating)
    assert explained(*changed).outcome == "Scheduled"


def test_a_shortage_of_capacity_says_by_how_much() -> None:
    def asking(amount: str) -> ApiStruct:
        return make_claim("c", request(capacity={"requests": {"memory": amount}}))

    devices = device("small", **memory("8Gi")), device("large", **memory("40Gi"))
    decision = explained(*on_one_node(*devices, claim=asking("80Gi")))
    finding = "capacity suffices of 0 of 2 devices: memory short by 40Gi"
    assert only(decision).finding == finding
    assert misses(decision)[0] == "fits on node n if request r asked for 40Gi less memory"
    assert explained(*on_one_node(*devices, claim=asking("40Gi"))).outcome == "Scheduled"


def partitioned(total: str) -> list[ApiStruct]:
    """Two partitions of 6Gi each, one of which is allocated."""
    uses = [{"counterSet": "s", "counters": quantities({"memory": "6Gi"})}]
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 2}
    parts = [device(name, consumesCounters=uses) for name in ("d0", "d1")]
    sets = [{"name": "s", "counters": quantities({"memory": total})}]
    counters = make_slice("n", name="counters", pool=pool, sharedCounters=sets)
    return [
        counters,
        *on_one_node(*parts, pool=pool),
        allocated(make_claim("other"), "n", "d0"),
    ]


def test_a_counter_that_is_exhausted_is_named() -> None:
    decision = explained(*partitioned("8Gi"))
    finding = "counters suffice for 0 of 1 free devices: memory of s short by 4Gi"
    assert only(decision).finding == finding
    assert "fits on node n if 4Gi more memory of s were free" in misses(decision)
    assert explained(*partitioned("12Gi")).outcome == "Scheduled"


def test_a_constraint_that_cannot_be_met_is_named() -> None:
    claim = make_claim(
        "c", request(count=2), constraints=[{"matchAttribute": "gpu.example.com/model"}]
    )
    devices = device("d0", model="a100"), device("d1", model="h100")
    shortage = only(explained(*on_one_node(*devices, claim=claim)))
    assert (shortage.why, shortage.short_by) == (Why.CONSTRAINT, 1)
    assert shortage.details == ("matchAttribute gpu.example.com/model",)


def test_requests_of_one_pod_that_want_the_same_device_are_named() -> None:
    claims = [make_claim("c"), make_claim("e")]
    cluster = on_one_node("d", claim=claims[0])
    decision = explained(*cluster, claims[1], pod=pod_with_claims("p", "c", "e"))
    shortage = only(decision)
    assert (shortage.claim, shortage.why) == ("default/e", Why.OTHER_REQUESTS)
    assert misses(decision) == ["fits on node n if 1 more device of class gpu was free"]


def test_two_requests_that_fail_are_named_both() -> None:
    claim = make_claim("c", request("a", count=3), request("b", selectors=[H100]))
    decision = explained(*on_one_node("d0", "d1", claim=claim))
    assert [(each.request, each.short_by) for each in decision.device_shortages] == [
        ("a", 1),
        ("b", 1),
    ]
    text = "fits on node n if 2 more devices of class gpu that its selectors match were free"
    assert misses(decision) == [text]


def test_each_alternative_is_named_and_the_nearest_counts() -> None:
    def alternative(name: str, count: int) -> dict[str, Any]:
        return {
            "name": name,
            "deviceClassName": "gpu",
            "allocationMode": "ExactCount",
            "count": count,
        }

    wanted = {"name": "r", "firstAvailable": [alternative("large", 4), alternative("small", 2)]}
    decision = explained(*on_one_node("d", claim=make_claim("c", wanted)))
    found = {each.request: each.short_by for each in decision.device_shortages}
    assert found == {"r/large": 3, "r/small": 1}
    assert misses(decision) == ["fits on node n if 1 more device of class gpu was free"]


def test_a_request_for_all_devices_of_which_one_is_in_use_is_named() -> None:
    claim = make_claim("c", request(allocationMode="All", count=0))
    other = allocated(make_claim("other"), "n", "d0")
    decision = explained(*on_one_node("d0", "d1", claim=claim), other)
    shortage = only(decision)
    assert shortage.subject == "claim default/c, request r (all devices of gpu)"
    assert shortage.finding == "1 of 2 devices are free"
    assert misses(decision) == ["fits on node n if all devices of class gpu were free"]
    assert explained(*on_one_node("d0", "d1", claim=claim)).outcome == "Scheduled"


def test_a_pool_that_is_being_updated_is_named() -> None:
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 2}
    shortage = only(explained(*on_one_node("d", pool=pool)))
    assert shortage.why is Why.POOL
    assert shortage.finding == "pools that cannot be used: gpu.example.com/n is being updated"


def test_a_claim_that_is_allocated_for_another_node_is_named() -> None:
    here = NodeSelectorRequirement("metadata.name", "In", ("gone",))
    claim = allocated(make_claim("c"), "n", "d")
    assert claim.status.allocation is not None
    selector = NodeSelector((NodeSelectorTerm(match_fields=(here,)),))
    allocation = replace(claim.status.allocation, node_selector=selector)
    claim = replace(claim, status=replace(claim.status, allocation=allocation))
    shortage = only(explained(*on_one_node("d", claim=claim)))
    assert (shortage.why, shortage.subject) == (Why.ELSEWHERE, "claim default/c")


def test_nodes_that_fail_alike_are_one_group() -> None:
    nodes = [make_node(name) for name in ("a", "b", "bare")]
    slices = [make_slice(name, ["d0"]) for name in ("a", "b")]
    used = [allocated(make_claim(f"of-{name}"), name, "d0") for name in ("a", "b")]
    decision = explained(*nodes, make_class(), *slices, *used, make_claim("c"))
    found = {each.nodes: each.why for each in decision.device_shortages}
    assert found == {("a", "b"): Why.IN_USE, ("bare",): Why.NO_DEVICES}


def test_a_pod_that_fits_lacks_nothing_where_it_fits() -> None:
    nodes = [make_node("n"), make_node("bare")]
    decision = explained(*nodes, make_class(), make_slice("n", ["d"]), make_claim("c"))
    assert decision.chosen == "n"
    assert only(decision).nodes == ("bare",)
    assert decision.near_misses == ()


def test_a_device_whose_binding_conditions_are_switched_off_is_not_counted_but_listed() -> None:
    objects = [*on_one_node(device("d0", bindingConditions=["ready"])), POD]
    for gates, usable in (("", True), ("DRADeviceBindingConditions=false", False)):
        cluster = loaded_cluster(*objects, gates=gates)
        (listed,) = explain_node(cluster, "n").devices
        assert listed.is_usable is usable
        decision = explain_pod(cluster, "default/p").decision
        assert decision.chosen == ("n" if usable else "")
    assert only(decision).why is Why.NO_DEVICES


def test_a_node_lists_its_devices_and_their_claims() -> None:
    other = allocated(make_claim("other"), "n", "d0")
    devices = device("d0", model="a100"), device("d1", taints=[TAINT], **memory("8Gi"))
    cluster = loaded_cluster(*on_one_node(*devices), other, POD)
    node = explain_node(cluster, "n")
    first, second = node.devices
    assert (first.device, first.claims, first.is_free) == (
        "gpu.example.com/n/d0",
        ("default/other",),
        False,
    )
    assert (second.capacity, second.taints, second.is_free) == (
        {"memory": "8Gi"},
        ("broken:NoSchedule",),
        True,
    )
    (rejected,) = node.rejects
    assert rejected.device_shortages[0].finding == "0 of 1 devices are free"
    assert (first.attributes, second.attributes) == ({"model": "a100"}, {})
