"""How many devices of a class each node has."""

from __future__ import annotations

import numpy as np

from stowage.state import ClusterCache
from tests.support.builders import make_node
from tests.support.device_builders import (
    DRIVER,
    allocated,
    device,
    make_claim,
    make_class,
    make_slice,
)


def test_a_class_counts_its_devices_and_an_unknown_one_has_none() -> None:
    cache = ClusterCache()
    cache.update_node(make_node("n"))
    row = cache.snapshot().row_of("n")
    assert row is not None
    cache.update_device_object(make_class("gpu", 'device.driver == "gpu.example.com"'))
    cache.update_device_object(make_slice("n", ["gpu-0", "gpu-1", "gpu-2"]))
    cache.update_device_object(allocated(make_claim("c"), "n", "gpu-1"))
    known, unknown = (cache.snapshot().devices.of_class(name) for name in ("gpu", "gone"))
    assert (known.total[row], known.used[row]) == (3, 1)
    assert (unknown.total[row], unknown.used[row]) == (0, 0)
    assert len(unknown.total) == len(unknown.used) == cache.snapshot().num_rows


def test_a_class_counts_shared_devices_on_each_node_that_may_use_them() -> None:
    cache = ClusterCache()
    for name in ("a", "b"):
        cache.update_node(make_node(name))
    cache.update_device_object(make_class("gpu"))
    assert cache.snapshot().devices.of_class("gpu").total.dtype == np.int64
    devices = [device("x", nodeName="a"), device("y", allNodes=True), device("z", allNodes=True)]
    cache.update_device_object(make_slice("", devices, name="s", perDeviceNodeSelection=True))
    cache.update_device_object(allocated(make_claim("c"), "", "y"))
    snapshot = cache.snapshot()
    found = snapshot.devices.of_class("gpu")
    rows = [snapshot.row_of(name) for name in ("a", "b")]
    assert [found.total[row] for row in rows] == [3, 2]
    assert [found.used[row] for row in rows] == [1, 1]


def test_a_node_has_no_devices_of_a_class_whose_selector_fails_for_one_of_them() -> None:
    cache = ClusterCache()
    for name in ("a", "b"):
        cache.update_node(make_node(name))
    cache.update_device_object(make_class(expression=f'device.attributes["{DRIVER}"].model == "m"'))
    cache.update_device_object(make_slice("a", [device("x", model="m"), device("y", model="n")]))
    cache.update_device_object(make_slice("b", [device("x", model="m"), "y"]))
    cache.update_device_object(allocated(make_claim("c"), "b", "x"))
    snapshot = cache.snapshot()
    found = snapshot.devices.of_class("gpu")
    rows = np.array([snapshot.row_of(name) for name in ("a", "b")], dtype=np.int64)
    assert (found.total[rows].tolist(), found.used[rows].tolist()) == ([1, 0], [0, 0])
