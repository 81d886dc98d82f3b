"""An allocated claim says where its devices can be reached; a claim that cannot be is named."""

from __future__ import annotations

from typing import Any

import pytest

from stowage.api.objects.device import DeviceObject
from stowage.api.objects.node import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from tests.stories.claim_driver import ClaimDriver, failures, writes_in
from tests.support.device_builders import (
    DRIVER,
    Json,
    device,
    make_claim,
    make_slice,
    quantities,
    request,
)

ZONE_A = {"key": "zone", "operator": "In", "values": ["a", "b"]}
RACK = {"key": "rack", "operator": "Exists", "values": []}
NAMED = {"key": "metadata.name", "operator": "In", "values": ["n0"]}
FILTER = 'running "DynamicResources" filter plugin: '
OTHER = "other.example.com"


def _selector(*terms: Json) -> Json:
    return {"nodeSelector": {"nodeSelectorTerms": list(terms)}}


def _shared(name: str, *devices: str, **spec: Any) -> DeviceObject:
    """A slice of a driver whose devices several nodes reach; it is the whole pool."""
    return make_slice(name, devices or ("nic-0",), driver=OTHER, **spec)


def _requirement(of: Json) -> NodeSelectorRequirement:
    return NodeSelectorRequirement(of["key"], of["operator"], tuple(of["values"]))


ALL_OF_OTHER = {"cel": {"expression": f'device.driver == "{OTHER}"'}}
OF_NODE = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}


def _where(claim: Any, *objects: DeviceObject) -> NodeSelector | None:
    """The node selector of the claim after it was allocated on a node of zone a."""
    driver = ClaimDriver(*objects)
    driver.add_nodes("n0", labels={"zone": "a", "rack": "1"})
    driver.show(claim)
    (wanted,) = writes_in(driver.schedule_pod("p", "c", node_selector={"zone": "a"})).claims
    assert wanted.allocation is not None
    return wanted.allocation.node_selector


def _of_other(**fields: Any) -> Any:
    return make_claim("c", request(selectors=[ALL_OF_OTHER], **fields))


def test_devices_that_all_nodes_reach_bring_no_node_selector() -> None:
    assert _where(_of_other(), _shared("net", allNodes=True)) is None


def test_a_device_of_one_node_brings_its_pod_to_that_node() -> None:
    here = NodeSelectorRequirement("metadata.name", "In", ("n0",))
    only = NodeSelector((NodeSelectorTerm(match_fields=(here,)),))
    assert _where(make_claim("c", request(selectors=[OF_NODE]))) == only
    mixed = make_claim("c", request("a", selectors=[ALL_OF_OTHER]), request(selectors=[OF_NODE]))
    assert _where(mixed, _shared("net", allNodes=True)) == only


def test_a_device_that_is_bound_to_the_node_where_it_is_allocated_brings_its_pod_there() -> None:
    bound = make_slice("net", [device("nic-0", bindsToNode=True)], driver=OTHER, allNodes=True)
    here = NodeSelectorRequirement("metadata.name", "In", ("n0",))
    assert _where(_of_other(), bound) == NodeSelector((NodeSelectorTerm(match_fields=(here,)),))


def test_the_conditions_of_all_devices_are_joined_each_of_them_once() -> None:
    in_zone = _shared("zonal", **_selector({"matchExpressions": [ZONE_A], "matchFields": [NAMED]}))
    again = {**ZONE_A, "values": ["b", "a"]}
    in_rack = _shared("racked", **_selector({"matchExpressions": [again, RACK]}))
    found = _where(_of_other(allocationMode="All", count=0), in_zone, in_rack)
    assert found is not None
    (term,) = found.node_selector_terms
    assert {each.key for each in term.match_expressions} == {"zone", "rack"}
    assert len(term.match_expressions) == 2
    assert term.match_fields == (_requirement(NAMED),)


def test_a_device_that_says_itself_where_it_is_overrules_its_slice() -> None:
    listed = [
        device("far", nodeName="n1"),
        device("near", **_selector({"matchExpressions": [RACK]})),
    ]
    per_device = make_slice("net", listed, driver=OTHER, perDeviceNodeSelection=True)
    found = _where(_of_other(), per_device)
    assert found == NodeSelector((NodeSelectorTerm(match_expressions=(_requirement(RACK),)),))


def _failure(claim: Any, *objects: DeviceObject) -> str:
    driver = ClaimDriver(*objects, claim)
    driver.add_nodes("n0", labels={"zone": "a", "rack": "1"})
    (failure,) = failures(driver.schedule_pod("p", "c", node_selector={"zone": "a"}))
    return failure


def test_a_slice_with_several_node_selector_terms_cannot_be_allocated() -> None:
    twice = _selector({"matchExpressions": [ZONE_A]}, {"matchExpressions": [RACK]})
    text = "create NodeSelector: unsupported ResourceSlice.NodeSelector with 2 terms"
    assert text in _failure(_of_other(), _shared("net", **twice))


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (
            {"selectors": [{}]},
            ", request r, selector #0: CEL expression empty (unsupported selector type?)",
        ),
        ({"allocationMode": "Most"}, ", request r: unsupported count mode Most"),
        ({"count": 33}, ": number of requested devices 33 exceeds the claim limit of 32"),
    ],
    ids=["selector", "mode", "number"],
)
def test_a_request_of_a_kind_that_is_not_known_is_named(fields: Json, text: str) -> None:
    failure = _failure(make_claim("c", request(**fields)))
    assert f"{FILTER}claim default/c{text}" in failure


def test_a_constraint_of_a_kind_that_is_not_known_is_named() -> None:
    text = "claim default/c, constraint #0: empty constraint (unsupported constraint type?)"
    assert f"{FILTER}{text}" in _failure(make_claim("c", constraints=[{"requests": ["r"]}]))


@pytest.mark.parametrize(
    ("count", "devices", "text"),
    [(2, ["nic-0"], "being updated"), (1, ["nic-0", "nic-0"], "invalid")],
    ids=["incomplete", "two of one name"],
)
def test_all_devices_of_a_pool_that_is_incomplete_or_invalid_are_not_known(
    count: int, devices: list[str], text: str
) -> None:
    pool = {"name": "net", "generation": 1, "resourceSliceCount": count}
    odd = _shared("net", *devices, pool=pool, allNodes=True)
    claim = _of_other(allocationMode="All", count=0)
    asked = f"asks for all devices, but resource pool {OTHER}/net is currently {text}"
    assert f"{FILTER}claim default/c, request r: {asked}" in _failure(claim, odd)


def test_devices_that_a_constraint_keeps_apart_are_not_all_allocated() -> None:
    listed = [device("nic-0", model="x"), device("nic-1", model="y")]
    claim = make_claim(
        "c",
        request(selectors=[ALL_OF_OTHER], allocationMode="All", count=0),
        constraints=[{"requests": ["r"], "matchAttribute": f"{OTHER}/model"}],
    )
    odd = make_slice("net", listed, driver=OTHER, allNodes=True)
    text = "because a claim constraint would not be satisfied"
    assert f"cannot add device {OTHER}/net/nic-1 {text}" in _failure(claim, odd)


def test_a_share_that_was_tried_in_vain_leaves_its_capacity_to_others() -> None:
    """Both requests fit on the devices only the other way around."""
    listed = [
        device(
            "big", model="x", allowMultipleAllocations=True, capacity=quantities({"memory": "10"})
        ),
        device(
            "small", model="y", allowMultipleAllocations=True, capacity=quantities({"memory": "4"})
        ),
    ]
    claim = make_claim(
        "c",
        *(
            request(name, selectors=[ALL_OF_OTHER], capacity={"requests": {"memory": amount}})
            for name, amount in (("few", "4"), ("many", "10"))
        ),
    )
    driver = ClaimDriver(make_slice("net", listed, driver=OTHER, allNodes=True), claim)
    (wanted,) = writes_in(driver.schedule_pod("p", "c")).claims
    assert wanted.allocation is not None
    results = wanted.allocation.devices.results
    assert [(each.request, each.device) for each in results] == [("few", "small"), ("many", "big")]
    assert [each.consumed_capacity for each in results] == [{"memory": "4"}, {"memory": "10"}]
