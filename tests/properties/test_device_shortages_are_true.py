"""With as many more devices as an explanation says, the pod fits; with fewer it does not."""

from __future__ import annotations

from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from stowage.analysis.explain_pod import explain_pod
from stowage.analysis.explanation import SchedulingExplanation
from tests.support.builders import make_node
from tests.support.clusters import loaded_cluster
from tests.support.device_builders import (
    allocated,
    device,
    make_claim,
    make_class,
    make_slice,
    pod_with_claims,
    request,
)

TAINT = {"key": "broken", "effect": "NoSchedule"}


class Found(NamedTuple):
    """A device of the node."""

    model: str
    is_tainted: bool
    is_in_use: bool


class Wanted(NamedTuple):
    """A request; an empty model selects every device."""

    model: str
    number: int
    tolerates: bool


FOUND = st.lists(st.builds(Found, st.sampled_from("ab"), st.booleans(), st.booleans()), max_size=6)
WANTED = st.lists(
    st.builds(Wanted, st.sampled_from(["", "a", "b"]), st.integers(1, 3), st.booleans()),
    min_size=1,
    max_size=3,
)


def _request(name: str, wanted: Wanted) -> Any:
    expression = f'device.attributes["gpu.example.com"].model == "{wanted.model}"'
    selectors = [{"cel": {"expression": expression}}] if wanted.model else []
    tolerations = [{"key": "broken", "operator": "Exists"}] if wanted.tolerates else []
    return request(name, count=wanted.number, selectors=selectors, tolerations=tolerations)


def explained(found: list[Found], wanted: list[Wanted], more: list[str]) -> SchedulingExplanation:
    """The decision with the devices of the node, and untainted free ones of these models."""
    devices = [
        device(f"d{index}", model=each.model, taints=[TAINT] if each.is_tainted else [])
        for index, each in enumerate(found)
    ]
    devices += [device(f"more{index}", model=model) for index, model in enumerate(more)]
    used = [f"d{index}" for index, each in enumerate(found) if each.is_in_use]
    requests = [_request(f"r{index}", each) for index, each in enumerate(wanted)]
    objects = [make_node("n"), make_class(), make_slice("n", devices), make_claim("c", *requests)]
    if used:
        objects.append(allocated(make_claim("other"), "n", *used))
    cluster = loaded_cluster(*objects, pod_with_claims("p", "c"))
    return explain_pod(cluster, "default/p").decision


@given(FOUND, WANTED)
def test_the_number_of_missing_devices_is_enough_and_no_less_is(
    found: list[Found], wanted: list[Wanted]
) -> None:
    decision = explained(found, wanted, [])
    assert bool(decision.device_shortages) == (decision.outcome == "Unschedulable")
    more = [
        wanted[int(each.request[1:])].model or "a"
        for each in decision.device_shortages
        for _ in range(each.short_by)
    ]
    if more:
        assert explained(found, wanted, more).outcome == "Scheduled"
        assert explained(found, wanted, more[1:]).outcome == "Unschedulable"


@given(FOUND, WANTED)
def test_each_step_counts_the_devices_that_pass_it(
    found: list[Found], wanted: list[Wanted]
) -> None:
    for each in explained(found, wanted, []).device_shortages:
        asked = wanted[int(each.request[1:])]
        selected = [it for it in found if asked.model in ("", it.model)]
        tolerated = [it for it in selected if asked.tolerates or not it.is_tainted]
        free = [it for it in tolerated if not it.is_in_use]
        counts = each.counts
        assert (counts.devices, counts.of_class) == (len(found), len(found))
        assert counts.selected == len(selected)
        assert (counts.tolerated, counts.sufficient) == (len(tolerated), len(tolerated))
        assert (counts.free, counts.available) == (len(free), len(free))
