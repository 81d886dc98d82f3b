"""Claims that no node satisfies, and devices of which no two are alike."""

from __future__ import annotations

from collections.abc import Iterator

from stowage.api.decoding.decode import convert_object
from stowage.api.events import DeviceObjectSeen
from stowage.api.objects.device import DeviceClass, ResourceSlice
from stowage.api.reflected_kinds import DEVICES
from stowage_benchmarks.devices import CLASS, DRIVER, device_class
from stowage_benchmarks.steps.shapes.shape import Shapes, Size, basic_cluster, pod
from stowage_benchmarks.steps.shell import MeasuredShell
from stowage_benchmarks.workloads import NAMESPACE, Json

_DEVICES_A_NODE = 8


def _no_match(shell: MeasuredShell, size: Size) -> None:
    """Four devices with the same value of an attribute, of which no node has two."""
    _with_devices(shell, size)
    request = _request({"count": 4})
    constraint = {"requests": ["r"], "matchAttribute": f"{DRIVER}/serial"}
    _ask(shell, {"requests": [request], "constraints": [constraint]})


def _all_differ(shell: MeasuredShell, size: Size) -> None:
    """A selector that reads an attribute of which every device has another value."""
    _with_devices(shell, size)
    expression = f'device.attributes["{DRIVER}"].serial.endsWith("-7-none")'
    _ask(shell, {"requests": [_request({"selectors": [{"cel": {"expression": expression}}]})]})


def _slices_arrive(shell: MeasuredShell, size: Size) -> None:
    """The slices of all nodes come in a list; then a pod asks for one of the devices."""
    basic_cluster(shell, size)
    shell.list_objects(DEVICES[0], [device_class()])
    shell.list_objects(DEVICES[2], (_slice(index) for index in range(size.nodes)))
    expression = f'device.attributes["{DRIVER}"].serial.startsWith("n")'
    _ask(shell, {"requests": [_request({"selectors": [{"cel": {"expression": expression}}]})]})


def _with_devices(shell: MeasuredShell, size: Size) -> None:
    basic_cluster(shell, size)
    shell.tell([DeviceObjectSeen(convert_object(DeviceClass, device_class()))])
    shell.tell(_slices(size))


def _slices(size: Size) -> Iterator[DeviceObjectSeen]:
    for index in range(size.nodes):
        yield DeviceObjectSeen(convert_object(ResourceSlice, _slice(index)))


def _slice(index: int) -> Json:
    name = f"node-{index:05d}"
    devices = [
        {
            "name": f"gpu-{number}",
            "attributes": {"serial": {"string": f"n{index}-{number}"}, "index": {"int": number}},
        }
        for number in range(_DEVICES_A_NODE)
    ]
    return {
        "metadata": {"name": name, "uid": f"uid-slice-{name}", "resourceVersion": "1"},
        "spec": {
            "driver": DRIVER,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "nodeName": name,
            "devices": devices,
        },
    }


def _request(fields: Json) -> Json:
    exactly = {"deviceClassName": CLASS, "allocationMode": "ExactCount", "count": 1, **fields}
    return {"name": "r", "exactly": exactly}


def _ask(shell: MeasuredShell, devices: Json) -> None:
    """A pod with a claim, and then a second one like it."""
    for name in ("p1", "p2"):
        claim = {
            "metadata": {
                "name": name,
                "namespace": NAMESPACE,
                "uid": f"uid-claim-{name}",
                "resourceVersion": "1",
            },
            "spec": {"devices": devices},
        }
        shell.list_objects(DEVICES[1], [claim])
        shell.list_pods([pod(name, resourceClaims=[{"name": "d", "resourceClaimName": name}])])
        shell.schedule()


DEVICE_SHAPES: Shapes = {
    "matchAttribute that no node satisfies, 8 devices a node": _no_match,
    "CEL on attributes that all differ, 8 devices a node": _all_differ,
    "slices of all nodes arrive, then the first CEL selector": _slices_arrive,
}
