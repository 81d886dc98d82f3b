"""Kept and vectorised answers about devices equal the exact search, node by node.

Random slices, classes, claims and allocations come and go. After each change the kept answers of
every template, brought up to date, must be those of a fresh search on each node; and the columns
and counts must equal a recount.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from stowage.api.objects.device import AllocationResult, DeviceAllocationResult, ResourceSlice
from stowage.plugins.dynamic_resources.allocator import AllocationError, Solution
from stowage.plugins.dynamic_resources.answers import (
    DOES_NOT_FIT,
    FAILED,
    FITS,
    HAS_INVALID_POOL,
    AnswerCache,
    Attempt,
)
from stowage.plugins.dynamic_resources.plain_requests import has_enough_devices
from stowage.plugins.dynamic_resources.templates import Template, Templates
from stowage.state import ClusterCache, Snapshot
from stowage.state.devices.device_info import DeviceId
from stowage.state.devices.devices import ClaimAllocation
from tests.support.builders import make_node
from tests.support.device_builders import (
    DRIVER,
    allocated,
    device,
    make_claim,
    make_class,
    make_slice,
    quantities,
    request,
)

NODES = ("a", "b", "c", "d")
MODELS = ("x", "y")
NIC_DRIVER = "nic.example.com"
BY_MODEL = {
    "selectors": [{"cel": {"expression": 'device.attributes["gpu.example.com"].model == "x"'}}]
}
BY_MEMORY = {"capacity": {"requests": {"memory": "20Gi"}}}
TOLERANT = {"tolerations": [{"operator": "Exists"}]}
MATCHING: dict[str, Any] = {"constraints": [{"matchAttribute": "gpu.example.com/model"}]}
LIST = [
    {
        "name": "s0",
        "deviceClassName": "gpu",
        "allocationMode": "ExactCount",
        "count": 2,
        **BY_MODEL,
    },
    {"name": "s1", "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1},
]
CLAIMS = (
    make_claim("plain"),
    make_claim("two", request("r", count=2)),
    make_claim("model", request("r", **BY_MODEL)),
    make_claim("memory", request("r", **BY_MEMORY)),
    make_claim("tolerant", request("r", count=2, **TOLERANT)),
    make_claim("both", request("r", **BY_MODEL), request("s", count=2)),
    make_claim("match", request("r", count=2), **MATCHING),
    make_claim("all", request("r", allocationMode="All", count=0)),
    make_claim("list", {"name": "r", "firstAvailable": LIST}),
    make_claim("no class", request("r", deviceClassName="gone")),
)
NIC = {"deviceClassName": "nic"}
ANY_NIC = {**NIC, "allocationMode": "ExactCount", "count": 1}
#: Requests for devices of another driver, which are on the network.
NETWORK = (
    make_claim("nic", request("r", **NIC)),
    make_claim("two nics", request("r", count=2, **NIC)),
    make_claim("nic and gpu", request("r", **NIC), request("s", **BY_MODEL)),
    make_claim("gpu by driver", request("r", deviceClassName="local")),
    make_claim("nic of model", request("r", **NIC, **BY_MODEL)),
    make_claim("nics that agree", request("r", count=2, **NIC), **MATCHING),
    make_claim("all nics", request("r", **{**NIC, "allocationMode": "All", "count": 0})),
    make_claim(
        "a nic, or a gpu", {"name": "r", "firstAvailable": [{"name": "s0", **ANY_NIC}, LIST[1]]}
    ),
    make_claim("list of one", {"name": "r", "firstAvailable": [{**LIST[0], "count": 1}]}),
    make_claim("tolerant nic", request("r", **NIC, **TOLERANT, **BY_MEMORY)),
)
#: Requests that must agree, in one constraint or several, all of them or some.
AGREEING = (
    make_claim("pair", request("r", **BY_MODEL), request("s"), **MATCHING),
    make_claim(
        "some",
        *(request(name) for name in "rst"),
        constraints=[{"matchAttribute": "gpu.example.com/model", "requests": ["r", "s"]}],
    ),
    make_claim(
        "two constraints",
        *(request(name) for name in "rstu"),
        constraints=[
            {"matchAttribute": "gpu.example.com/model", "requests": ["r", "s"]},
            {"matchAttribute": "gpu.example.com/model", "requests": ["t", "u"]},
        ],
    ),
    make_claim(
        "both attributes",
        request("r", count=2),
        constraints=[
            {"matchAttribute": "gpu.example.com/model"},
            {"matchAttribute": "gpu.example.com/numa"},
        ],
    ),
)
TEMPLATES = [
    *((each,) for each in CLAIMS),
    (CLAIMS[0], CLAIMS[2]),
    (CLAIMS[6], CLAIMS[1]),
    *((each,) for each in AGREEING),
    (AGREEING[0], CLAIMS[1]),
    *((each,) for each in NETWORK),
    (NETWORK[0], NETWORK[3]),
    (CLAIMS[2], NETWORK[1]),
]


def _taint(effect: str) -> dict[str, str]:
    return {"key": "k", "effect": effect}


@st.composite
def devices(draw: st.DrawFn) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    model = draw(st.sampled_from((*MODELS, None)))
    if draw(st.booleans()):
        fields["capacity"] = quantities({"memory": draw(st.sampled_from(("10Gi", "40Gi")))})
    if draw(st.integers(0, 4)) == 0:
        fields["taints"] = [_taint(draw(st.sampled_from(("NoSchedule", "None"))))]
    if draw(st.integers(0, 5)) == 0:
        fields["allowMultipleAllocations"] = True
    if draw(st.integers(0, 5)) == 0:
        counters = quantities({"slots": "1"})
        fields["consumesCounters"] = [{"counterSet": "set", "counters": counters}]
    made = device(f"gpu-{draw(st.integers(0, 3))}", model=model, **fields)
    numa = draw(st.sampled_from(({"int": 0}, {"int": 1}, {"string": "0"}, {}, None)))
    if numa is not None:
        made["attributes"]["numa"] = numa
    return made


@st.composite
def slices(draw: st.DrawFn) -> ResourceSlice:
    node, part = draw(st.sampled_from(NODES)), draw(st.integers(0, 2))
    listed = draw(st.lists(devices(), max_size=4, unique_by=lambda each: each["name"]))
    generation = draw(st.sampled_from((1, 1, 1, 2)))
    number = draw(st.sampled_from((1, 1, 2)))
    spec: dict[str, Any] = {
        "name": f"{node}-{part}",
        "pool": {
            "name": draw(st.sampled_from((node, node, "net"))),
            "generation": generation,
            "resourceSliceCount": number,
        },
    }
    kind = draw(st.integers(0, 9))
    if kind == 0:
        spec["allNodes"] = True
    elif kind == 1:
        key = {"key": "zone", "operator": "In", "values": ["z0"]}
        spec["nodeSelector"] = {"nodeSelectorTerms": [{"matchExpressions": [key]}]}
    elif kind == 2:
        spec["sharedCounters"] = [{"name": "set", "counters": quantities({"slots": "2"})}]
        listed = []
    return make_slice(node, listed, **spec)


#: Where slices on the network are, and the nodes that one of their devices is for.
IN_ZONES: Any = {
    zone: {
        "nodeSelector": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}
            ]
        }
    }
    for zone in ("z0", "z1")
}
EVERYWHERE = {"allNodes": True}


def nic(name: str, model: str) -> dict[str, Any]:
    """A device that publishes its model as the other driver does."""
    return {"name": name, "attributes": {f"{DRIVER}/model": {"string": model}}}


@st.composite
def network_slices(draw: st.DrawFn) -> ResourceSlice:
    """A slice of another driver; most of them are whole pools and have plain devices."""
    pool, part = draw(st.sampled_from(("net-0", "net-1", "a"))), draw(st.integers(0, 1))
    plain = st.builds(nic, st.sampled_from(("gpu-0", "gpu-1")), st.sampled_from(MODELS))
    kinds = devices() if draw(st.integers(0, 4)) == 0 else plain
    listed = draw(st.lists(kinds, min_size=1, max_size=3, unique_by=lambda each: each["name"]))
    places = (EVERYWHERE, EVERYWHERE, *IN_ZONES.values(), {"nodeName": "a"}, {})
    spec: dict[str, Any] = draw(st.sampled_from(places))
    if not spec:
        for each in listed:
            each.update(draw(st.sampled_from(({"nodeName": "b"}, EVERYWHERE))))
        spec = {"perDeviceNodeSelection": True}
    elif draw(st.integers(0, 9)) == 0:
        spec = {**spec, "sharedCounters": [{"name": "set", "counters": quantities({"slots": "2"})}]}
        listed = []
    number = draw(st.sampled_from((1, 1, 1, 2)))
    return network_slice(pool, part, listed, number, **spec)


def network_slice(
    pool: str, part: int, listed: list[Any], num_slices: int, **spec: Any
) -> ResourceSlice:
    of_pool = {"name": pool, "generation": 1, "resourceSliceCount": num_slices}
    return make_slice("a", listed, name=f"{pool}-n{part}", driver=NIC_DRIVER, pool=of_pool, **spec)


NUMBERS = st.integers(0, len(TEMPLATES) - 1)

#: What happens: (what, details).
CHANGES = st.one_of(
    st.tuples(st.just("slice"), slices()),
    st.tuples(st.just("slice"), slices()),
    st.tuples(st.just("slice"), network_slices()),
    st.tuples(
        st.just("no slice"),
        st.builds("{}-{}".format, st.sampled_from(NODES), st.integers(0, 2))
        | st.builds("net-{}-n{}".format, st.integers(0, 1), st.integers(0, 1)),
    ),
    st.tuples(st.just("reserve"), st.tuples(NUMBERS, st.sampled_from(NODES))),
    st.tuples(st.just("reserve"), st.tuples(NUMBERS, st.sampled_from(NODES))),
    st.tuples(st.just("release"), NUMBERS),
    st.tuples(st.just("label"), st.tuples(st.sampled_from(NODES), st.sampled_from(("z0", "z1")))),
    st.tuples(
        st.just("class"), st.sampled_from(("", 'device.attributes["gpu.example.com"].model == "x"'))
    ),
    st.tuples(st.just("claim"), st.tuples(st.sampled_from(NODES), st.integers(0, 3))),
    st.tuples(st.just("network"), st.just(None)),
)


def change_lists(max_size: int = 12) -> st.SearchStrategy[list[tuple[str, Any]]]:
    """Changes; of half of the lists the first one gives each node devices of both drivers."""
    lists = st.lists(CHANGES, min_size=1, max_size=max_size)
    return st.one_of(lists, lists.map(lambda found: [("network", None), *found]))


class Model:
    """A cluster with kept answers."""

    def __init__(self) -> None:
        self.cache = ClusterCache()
        self.answers = AnswerCache()
        self.templates = Templates()
        self.version = 1
        for name in NODES:
            self.cache.update_node(make_node(name, labels={"zone": "z0"}))
        self.cache.update_device_object(make_class())
        for name, driver in (("local", DRIVER), ("nic", NIC_DRIVER)):
            self.cache.update_device_object(make_class(name, f'device.driver == "{driver}"'))

    def apply(self, change: tuple[str, Any]) -> None:
        self.version += 1
        what, detail = change
        match what:
            case "slice":
                meta = replace(detail.metadata, resource_version=str(self.version))
                self.cache.update_device_object(replace(detail, metadata=meta))
            case "no slice":
                self.cache.remove_device_object(ResourceSlice, detail)
            case "reserve":
                self.reserve(*detail)
            case "release":
                self.cache.end_allocations([f"uid-{detail}"])
            case "label":
                self.cache.update_node(make_node(detail[0], labels={"zone": detail[1]}))
            case "class":
                made = make_class(expression=detail)
                meta = replace(made.metadata, resource_version=str(self.version))
                self.cache.update_device_object(replace(made, metadata=meta))
            case "network":
                self.cover_all_nodes()
            case "claim":
                claim = make_claim("other", version=str(self.version))
                taken = DeviceId(DRIVER, detail[0], f"gpu-{detail[1]}")
                # The API server would show a device twice only if the scheduler gave it twice.
                if taken not in self.cache.snapshot().devices.allocated.whole:
                    self.cache.update_device_object(allocated(claim, taken.pool, taken.device))

    def cover_all_nodes(self) -> None:
        """Each node gets devices of its own, and devices on the network that zones can use."""
        own = [make_slice(name, ["gpu-0", device("gpu-1", model="x")]) for name in NODES]
        listed = [nic("gpu-0", "x"), nic("gpu-1", "x")]
        places = (EVERYWHERE, *IN_ZONES.values())
        shared = [network_slice(f"net-{i}", 0, listed, 1, **it) for i, it in enumerate(places)]
        for each in (*own, *shared):
            self.apply(("slice", each))

    def attempt(self, number: int) -> Attempt:
        claims = TEMPLATES[number]
        template = self.templates.of([each.spec for each in claims])
        names = tuple(each.metadata.namespaced_name for each in claims)
        return Attempt(self.cache.snapshot(), template, names, lambda: lambda: False)

    def reserve(self, number: int, node_name: str) -> None:
        """Take what a template gets on a node, as Reserve does."""
        attempt = self.attempt(number)
        row = attempt.snapshot.row_of(node_name)
        assert row is not None
        solution = searched(attempt, row)
        if not isinstance(solution, Solution):
            return
        results = allocated(
            CLAIMS[0], "", *(each.device.id.device for taken in solution.taken for each in taken)
        ).status.allocation
        assert results is not None
        taken = [each for taken in solution.taken for each in taken]
        pairs = zip(results.devices.results, taken, strict=True)
        listed = tuple(
            replace(
                result,
                driver=each.device.id.driver,
                pool=each.device.id.pool,
                share_id="s" if each.device.signature.allows_multiple else None,
                consumed_capacity={name: amount.text for name, amount in each.consumed.items()},
            )
            for result, each in pairs
        )
        allocation = AllocationResult(DeviceAllocationResult(listed))
        self.cache.begin_allocations(
            [ClaimAllocation(f"uid-{number}", "ns/c", allocation)], "uid-p"
        )


def searched(attempt: Attempt, row: int) -> Solution | AllocationError | None:
    try:
        return attempt.search(row, {})
    except AllocationError as error:
        return error


def devices_in(found: Solution | AllocationError | None) -> list[list[DeviceId]]:
    assert not isinstance(found, AllocationError)
    return [] if found is None else [[each.device.id for each in taken] for taken in found.taken]


def expected_code(attempt: Attempt, row: int) -> int:
    found = searched(attempt, row)
    if isinstance(found, AllocationError):
        return FAILED
    if found is not None:
        return FITS
    pools = attempt.snapshot.devices.slices.pools_of(row)
    return HAS_INVALID_POOL if any(pool.is_invalid for pool in pools) else DOES_NOT_FIT


@settings(max_examples=120, deadline=None)
@given(change_lists())
def test_kept_answers_equal_fresh_searches(changes: list[tuple[str, Any]]) -> None:
    model = Model()
    for change in changes:
        model.apply(change)
        model.cache.validate()
        for number in range(len(TEMPLATES)):
            attempt = model.attempt(number)
            answers = model.answers.find(attempt)
            for row in rows_of(attempt.snapshot):
                assert answers.codes[row] == expected_code(attempt, row), (number, row)
                if answers.codes[row] == FAILED:
                    assert answers.errors[row] == str(searched(attempt, row))
                if answers.codes[row] == FITS:
                    kept = model.answers.solve(attempt, answers, row)
                    assert devices_in(kept) == devices_in(searched(attempt, row)), (number, row)


@settings(max_examples=60, deadline=None)
@given(change_lists(6), st.lists(CHANGES, min_size=1, max_size=3))
def test_devices_that_were_found_are_searched_again_after_a_change(
    before: list[tuple[str, Any]], after: list[tuple[str, Any]]
) -> None:
    """Members of a pod group reserve devices after the answers were made for all of them."""
    model = Model()
    for change in before:
        model.apply(change)
    kept = [model.answers.find(model.attempt(number)) for number in range(len(TEMPLATES))]
    for change in after:
        model.apply(change)
    for number, answers in enumerate(kept):
        attempt = model.attempt(number)
        for row in rows_of(attempt.snapshot):
            expected = searched(attempt, row)
            if not isinstance(expected, AllocationError):
                found = model.answers.solve(attempt, answers, row)
                assert devices_in(found) == devices_in(expected), (number, row)


@settings(max_examples=120, deadline=None)
@given(change_lists())
def test_the_vectorised_answer_is_right_wherever_it_is_final(
    changes: list[tuple[str, Any]],
) -> None:
    model = Model()
    for change in changes:
        model.apply(change)
    for number in range(len(TEMPLATES)):
        attempt = model.attempt(number)
        snapshot = attempt.snapshot
        plain = has_enough_devices(attempt.template, snapshot.devices, snapshot.num_rows)
        if plain is None:
            continue
        for row in rows_of(snapshot):
            if not plain.is_open[row]:
                fits = isinstance(searched(attempt, row), Solution)
                assert bool(plain.has_enough[row]) == fits, (number, row)


@settings(max_examples=120, deadline=None)
@given(change_lists())
def test_a_solution_takes_free_devices_that_satisfy_the_claim(
    changes: list[tuple[str, Any]],
) -> None:
    model = Model()
    for change in changes:
        model.apply(change)
    devices_ = model.cache.snapshot().devices
    for number in range(len(TEMPLATES)):
        attempt = model.attempt(number)
        for row in rows_of(attempt.snapshot):
            found = searched(attempt, row)
            if not isinstance(found, Solution):
                continue
            whole = [
                each.device.id
                for taken in found.taken
                for each in taken
                if not each.device.signature.allows_multiple
            ]
            assert len(whole) == len(set(whole))
            assert not set(whole) & devices_.allocated.whole.keys()
            if number == 6:
                models = {
                    each.device.signature.attribute("gpu.example.com/model")
                    for each in found.taken[0]
                }
                assert len(models) == 1
                assert None not in models


def rows_of(snapshot: Snapshot) -> list[int]:
    rows = [snapshot.row_of(name) for name in NODES]
    return [row for row in rows if row is not None]


def test_there_are_plain_and_other_templates() -> None:
    templates: list[Template] = [Model().attempt(number).template for number in range(12)]
    assert {each.is_plain for each in templates} == {True, False}


def test_a_node_that_changes_does_not_change_the_devices_of_nodes_that_were_like_it() -> None:
    """Nodes with the same devices are searched once, for the first of them."""
    model, number = Model(), TEMPLATES.index((CLAIMS[8],))
    for zone, spec in IN_ZONES.items():
        listed = [nic("gpu-0", "x"), nic("gpu-1", "x")]
        model.apply(("slice", network_slice(f"net-{zone}", 0, listed, 1, **spec)))
    model.answers.find(model.attempt(number))
    for name in NODES[:2]:
        model.apply(("label", (name, "z1")))
        attempt = model.attempt(number)
        answers = model.answers.find(attempt)
        for row in rows_of(attempt.snapshot):
            kept = model.answers.solve(attempt, answers, row)
            assert devices_in(kept) == devices_in(searched(attempt, row))


def test_nodes_are_not_alike_if_a_selector_fails_for_a_device_of_one_of_them() -> None:
    model, number = Model(), TEMPLATES.index((NETWORK[8],))
    model.apply(("slice", network_slice("net-0", 0, [nic("gpu-0", "y")], 1, **EVERYWHERE)))
    for name in NODES:
        model.apply(("slice", make_slice(name, [device("gpu-0", model="y")])))
    model.apply(("slice", make_slice("b", ["gpu-0"])))
    attempt = model.attempt(number)
    answers = model.answers.find(attempt)
    codes = [answers.codes[row] for row in rows_of(attempt.snapshot)]
    assert codes == [DOES_NOT_FIT, FAILED, DOES_NOT_FIT, DOES_NOT_FIT]
