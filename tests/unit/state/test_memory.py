"""What is gone from the cluster leaves no memory in use."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable

import pytest

from stowage.state import ClusterCache, make_pod_info
from stowage.state.devices.devices import ClaimAllocation
from tests.support.builders import make_node, make_pod
from tests.support.device_builders import allocated, make_claim, make_slice
from tests.support.volume_builders import claim_volume

NUM_WARM, NUM_COUNTED, MAX_BYTES_EACH = 300, 600, 150


def _pod_with_a_volume(cache: ClusterCache, number: int) -> None:
    pod = make_pod(f"p{number}", node="n", volumes=(claim_volume(f"c{number}"),))
    info = make_pod_info(pod, cache.classes)
    cache.update_pod(info)
    cache.snapshot()
    cache.remove_pod(info.uid)


def _claim_in_flight(cache: ClusterCache, number: int) -> None:
    claim = allocated(make_claim(f"c{number}"), "n", "gpu-0")
    assert claim.status.allocation is not None
    uid, name = claim.metadata.uid, claim.metadata.namespaced_name
    cache.begin_allocations([ClaimAllocation(uid, name, claim.status.allocation)], f"p{number}")
    cache.end_allocations([uid])


@pytest.mark.parametrize("come_and_go", [_pod_with_a_volume, _claim_in_flight])
def test_memory_does_not_grow_with_what_comes_and_goes(
    come_and_go: Callable[[ClusterCache, int], None],
) -> None:
    """An entry of a table that stays behind takes 350 bytes."""
    cache = ClusterCache()
    cache.update_node(make_node("n"))
    cache.update_device_object(make_slice("n", ["gpu-0"]))
    for number in range(NUM_WARM):
        come_and_go(cache, number)
    gc.collect()
    tracemalloc.start()
    try:
        for number in range(NUM_WARM, NUM_WARM + NUM_COUNTED):
            come_and_go(cache, number)
        gc.collect()
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert grown < NUM_COUNTED * MAX_BYTES_EACH
