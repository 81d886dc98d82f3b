"""A search that leaves out devices without hope finds the same devices as one that tries all."""

from __future__ import annotations

from itertools import combinations, permutations
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from stowage.plugins.dynamic_resources.allocator import AllocationError, NodeSearch, Solution
from stowage.plugins.dynamic_resources.pruning import can_serve
from stowage.plugins.dynamic_resources.templates import Templates
from stowage.state import ClusterCache
from stowage.state.devices.device_info import DeviceId
from tests.support.builders import make_node
from tests.support.device_builders import device, make_claim, make_class, make_slice, request

DEVICES = [DeviceId("driver", "pool", name) for name in "abcdefg"]
ATTRIBUTES = ("model", "numa")
HAS_MODEL = {"cel": {"expression": '"model" in device.attributes["gpu.example.com"]'}}
FAILS_WITHOUT_MODEL = {
    "cel": {"expression": 'device.attributes["gpu.example.com"].model.string() == "m0"'}
}
MODEL_0 = {"cel": {"expression": 'device.attributes["gpu.example.com"].model == "m0"'}}


class WholeSearch(NodeSearch):
    """The search without leaving anything out."""

    def _prune(self) -> None:
        return


@st.composite
def devices(draw: st.DrawFn) -> list[dict[str, Any]]:
    listed = []
    for index in range(draw(st.integers(1, 7))):
        made = device(f"gpu-{index}")
        if draw(st.integers(0, 9)):
            made["attributes"]["model"] = {"string": draw(st.sampled_from(("m0", "m1")))}
        if draw(st.integers(0, 9)):
            numa = draw(st.sampled_from(({"int": 0}, {"int": 1}, {})))
            made["attributes"]["numa"] = numa
        if draw(st.integers(0, 9)) == 0:
            made["allowMultipleAllocations"] = True
        listed.append(made)
    return listed


@st.composite
def claims(draw: st.DrawFn, name: str) -> Any:
    requests = []
    for each in "rst"[: draw(st.integers(1, 3))]:
        selectors = draw(st.sampled_from(([], [], [HAS_MODEL, MODEL_0], [FAILS_WITHOUT_MODEL])))
        requests.append(request(each, count=draw(st.integers(1, 4)), selectors=selectors))
    constraints = []
    for attribute in draw(st.lists(st.sampled_from(ATTRIBUTES), max_size=3)):
        chosen = draw(st.lists(st.sampled_from([each["name"] for each in requests]), unique=True))
        kind = draw(st.sampled_from(("matchAttribute",) * 5 + ("distinctAttribute",)))
        constraints.append({kind: f"gpu.example.com/{attribute}", "requests": chosen})
    return make_claim(name, *requests, constraints=constraints)


def found_by(search: type[NodeSearch], cache: ClusterCache, wanted: list[Any]) -> object:
    """The names of the devices by claim, the text of an error, or None."""
    snapshot = cache.snapshot()
    row = snapshot.row_of("a")
    assert row is not None
    template = Templates().of([each.spec for each in wanted])
    names = [each.metadata.name for each in wanted]
    pools = snapshot.devices.slices.pools_of(row)
    try:
        found = search(snapshot.devices, template.claims, names, {}, lambda: False).run(
            pools, "a", {}
        )
    except AllocationError as error:
        return str(error)
    if not isinstance(found, Solution):
        return None
    return [[each.device.id.device for each in taken] for taken in found.taken]


@settings(max_examples=300, deadline=None)
@given(devices(), st.lists(st.sampled_from((0, 1)).flatmap(lambda n: claims(f"c{n}")), max_size=2))
def test_leaving_out_devices_changes_no_answer(
    listed: list[dict[str, Any]], wanted: list[Any]
) -> None:
    if not wanted:
        return
    cache = ClusterCache()
    cache.update_node(make_node("a"))
    cache.update_device_object(make_class())
    cache.update_device_object(make_slice("a", listed))
    assert found_by(NodeSearch, cache, wanted) == found_by(WholeSearch, cache, wanted)


def plain_can_serve(counts: list[int], devices: list[list[DeviceId]]) -> bool:
    """Whether some choice of devices for one request after the other works out."""

    def works_out(request: int, taken: frozenset[DeviceId]) -> bool:
        if request == len(counts):
            return True
        free = [each for each in devices[request] if each not in taken]
        return any(
            works_out(request + 1, taken | set(chosen))
            for chosen in combinations(free, counts[request])
        )

    return works_out(0, frozenset())


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.lists(st.sampled_from(DEVICES), unique=True)), max_size=4
    )
)
def test_requests_can_be_served_if_some_choice_works_out(
    wanted: list[tuple[int, list[DeviceId]]],
) -> None:
    counts, listed = [count for count, _ in wanted], [each for _, each in wanted]
    assert can_serve(counts, listed) == plain_can_serve(counts, listed)


def test_requests_pass_devices_on_until_all_are_served() -> None:
    """Each request can have two devices that stand in a row; there is one way for all, or two."""
    rows = [DEVICES[index : index + 2] for index in range(6)]
    for order in list(permutations(range(6)))[::37]:
        assert can_serve([1] * 6, [rows[index] for index in order])
        assert can_serve([1] * 6 + [1], [*(rows[index] for index in order), DEVICES[:1]])
        too_many = [*(rows[index] for index in order), DEVICES[:1], DEVICES[6:]]
        assert not can_serve([1] * 8, too_many)
