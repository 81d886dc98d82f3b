"""Resource slices: defaults, validation and selection."""

from typing import Any

import pytest

from simcluster.tests.contract.causes import (
    DUPLICATE,
    FORBIDDEN,
    INVALID,
    REQUIRED,
    TOO_MANY,
    causes,
)
from simcluster.tests.contract.device_objects import (
    SLICES,
    device_slice,
)
from simcluster.tests.support.api_client import ApiClient

Json = dict[str, Any]


async def test_a_slice_is_filled_with_the_time_of_taints_and_canonical_amounts(
    api: ApiClient,
) -> None:
    device = {
        "name": "gpu-0",
        "capacity": {"memory": {"value": "1.5Gi"}},
        "attributes": {"index": {"int": 2**40}, "list": {"strings": ["dropped"], "int": 1}},
        "taints": [{"key": "broken", "effect": "NoSchedule"}],
    }
    created = await api.create(SLICES, device_slice(device))
    stored = created["spec"]["devices"][0]
    assert stored["capacity"] == {"memory": {"value": "1536Mi"}}
    assert stored["attributes"] == {"index": {"int": 2**40}, "list": {"int": 1}}
    assert stored["taints"][0]["timeAdded"].endswith("Z")
    assert created["metadata"]["generation"] == 1


COUNTERS: Json = {"memory": {"value": "80Gi"}}
CONSUMES: Json = {"counterSet": "gpu-0", "counters": COUNTERS}
POLICY: Json = {"default": "1Gi", "validRange": {"min": "1Gi", "step": "1Gi"}}
DEVICE = "spec.devices[0]"
SLICE_ERRORS: list[Any] = [
    pytest.param(
        device_slice({"name": "Gpu"}),
        [(INVALID, f"{DEVICE}.name")],
        id="name of a device",
    ),
    pytest.param(
        device_slice({"name": "a"}, {"name": "a"}),
        [(DUPLICATE, "spec.devices[1]")],
        id="two devices of a name",
    ),
    pytest.param(
        device_slice({"name": "a"}, allNodes=True, nodeName="node-1"),
        [(INVALID, "spec")],
        id="two ways to say the nodes",
    ),
    pytest.param(
        device_slice({"name": "a"}, nodeName=""),
        [(INVALID, "spec.nodeName"), (REQUIRED, "spec")],
        id="empty node name",
    ),
    pytest.param(
        device_slice({"name": "a"}, perDeviceNodeSelection=True),
        [(REQUIRED, DEVICE)],
        id="device without its nodes",
    ),
    pytest.param(
        device_slice({"name": "a", "allNodes": True}),
        [(INVALID, DEVICE)],
        id="nodes of a device in a slice of a node",
    ),
    pytest.param(
        device_slice({"name": "a"}, pool={"name": "", "resourceSliceCount": 0}),
        [(REQUIRED, "spec.pool.name"), (INVALID, "spec.pool.resourceSliceCount")],
        id="pool",
    ),
    pytest.param(
        device_slice({"name": "a", "attributes": {"model": {"string": "x", "int": 1}}}),
        [(INVALID, f"{DEVICE}.attributes[model]")],
        id="attribute of two values",
    ),
    pytest.param(
        device_slice({"name": "a", "attributes": {"v": {"version": "1.2"}}}),
        [(INVALID, f"{DEVICE}.attributes[v].version")],
        id="version",
    ),
    pytest.param(
        device_slice({"name": "a", "attributes": {"no-identifier": {"int": 1}}}),
        [(INVALID, f"{DEVICE}.attributes")],
        id="name of an attribute",
    ),
    pytest.param(
        device_slice({"name": "a", "taints": [{"key": "k"}]}),
        [(REQUIRED, f"{DEVICE}.taints[0].effect")],
        id="taint",
    ),
    pytest.param(
        device_slice({"name": "a"}, sharedCounters=[{"name": "s", "counters": COUNTERS}]),
        [(INVALID, "spec")],
        id="counters and devices",
    ),
    pytest.param(
        device_slice({"name": "a", "consumesCounters": [CONSUMES, CONSUMES]}),
        [(DUPLICATE, f"{DEVICE}.consumesCounters[1]")],
        id="counter set twice",
    ),
    pytest.param(
        device_slice({"name": "a", "capacity": {"m": {"value": "8Gi", "requestPolicy": POLICY}}}),
        [(FORBIDDEN, f"{DEVICE}.capacity[m].requestPolicy")],
        id="policy of a device that is not shared",
    ),
    pytest.param(
        device_slice(
            {
                "name": "a",
                "allowMultipleAllocations": True,
                "capacity": {
                    "m": {"value": "8Gi", "requestPolicy": {**POLICY, "default": "1500Mi"}}
                },
            }
        ),
        [(INVALID, f"{DEVICE}.capacity[m].requestPolicy.validRange.step")],
        id="default between two steps",
    ),
    pytest.param(
        device_slice({"name": "a", "bindingConditions": ["ready"]}),
        [(INVALID, f"{DEVICE}.bindingFailureConditions")],
        id="binding conditions without failures",
    ),
    pytest.param(
        device_slice(
            *({"name": f"d{number}", "consumesCounters": [CONSUMES]} for number in range(65))
        ),
        [(TOO_MANY, "spec.devices")],
        id="65 devices with counters",
    ),
]


@pytest.mark.parametrize(("body", "expected"), SLICE_ERRORS)
async def test_a_bad_slice_is_refused(
    api: ApiClient, body: Json, expected: list[tuple[str, str]]
) -> None:
    assert [cause[:2] for cause in causes(await api.post(SLICES, body))] == expected


async def test_a_slice_keeps_its_driver_its_pool_and_its_node(api: ApiClient) -> None:
    stored = await api.create(SLICES, device_slice({"name": "a"}))
    stored["spec"] |= {"driver": "other.example.com", "nodeName": "node-2"}
    stored["spec"]["pool"]["name"] = "other"
    found = causes(await api.put(f"{SLICES}/slice", stored))
    fields = ["spec.pool.name", "spec.driver", "spec.nodeName"]
    assert [cause[1] for cause in found] == fields


async def test_slices_are_selected_by_node_and_driver(api: ApiClient) -> None:
    await api.create(SLICES, device_slice({"name": "a"}))
    other = device_slice({"name": "a"}, allNodes=True)
    await api.create(SLICES, {**other, "metadata": {"name": "shared"}})
    for selector, names in (
        ("spec.nodeName%3Dnode-1", ["slice"]),
        ("spec.nodeName%3D", ["shared"]),
        ("spec.driver%3Dgpu.example.com", ["shared", "slice"]),
    ):
        items = (await api.get(f"{SLICES}?fieldSelector={selector}")).body["items"]
        assert [item["metadata"]["name"] for item in items] == names
