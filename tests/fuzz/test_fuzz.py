"""A few inputs of ``python -m tests.fuzz``, and every input that ever failed."""

from __future__ import annotations

import json
import time
from random import Random
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stowage.api.decoding.decode import decode_list, decode_object, decode_watch_event
from stowage.api.decoding.errors import MAX_SHOWN, InvalidObject, QuantityError
from stowage.api.objects.node import Node
from stowage.api.objects.pod import Pod
from stowage.api.objects.volume import CSINode
from stowage.api.values.quantity import parse_quantity, quantity_value
from tests.fuzz.campaign import MAX_STEP_S, Campaign
from tests.fuzz.objects import SAMPLES
from tests.fuzz.shrinking import shrunk
from tests.fuzz.targets import TARGETS
from tests.fuzz.trials import (
    MAX_MESSAGE,
    EngineTrial,
    try_field_selector,
    try_label_selector,
    try_quantity,
)

SLOW = {"configuration": 120, "configmap": 120, "console": 200}
"""Targets of which each input takes milliseconds."""

HUGE_DRIVER = {"name": "d", "nodeID": "n", "allocatable": {"count": 2**63}}
TOO_DEEP = b"[" * 100_000 + b"]" * 100_000


class _Planted:
    """A target with a fault: it takes no text with an x, needs long for a y, and keeps each z."""

    name = "planted"
    kept: ClassVar[list[list[int]]] = []

    def make(self, rng: Random) -> str:
        return "".join(rng.choices("abc", k=20)) + self.last

    def run(self, given: str) -> str:
        if "y" in given:
            until = time.process_time() + 2 * MAX_STEP_S
            while time.process_time() < until:
                pass
        if "z" in given:
            self.kept.extend([number] for number in range(1_000))
        return "accepted" if "x" not in given else str(1 // 0)

    def close(self) -> None:
        self.kept.clear()

    def __init__(self, last: str) -> None:
        self.last = last


@pytest.mark.parametrize("name", TARGETS)
def test_some_inputs_of_every_target_lead_to_no_finding(name: str) -> None:
    target = TARGETS[name]()
    found: list[str] = []
    campaign = Campaign(target, 7, found.append)
    try:
        campaign.run(SLOW.get(name, 300))
    finally:
        target.close()
    # The time of a step depends on what else the machine does; the long runs judge it.
    assert [each for each in found if " takes " not in each] == []
    assert len(campaign.outcomes) >= 2


def test_an_input_is_made_again_from_seed_and_number() -> None:
    first, second = (Campaign(TARGETS["cel"](), 5, print) for _ in range(2))
    assert [first.input(n) for n in range(20)] == [second.input(n) for n in range(20)]
    assert first.input(1) != Campaign(TARGETS["cel"](), 6, print).input(1)


@pytest.mark.parametrize(
    ("last", "kind"), [("x", "ZeroDivisionError"), ("y", " takes "), ("z", "leave more")]
)
def test_a_fault_is_found(last: str, kind: str) -> None:
    target, found = _Planted(last), list[str]()
    campaign = Campaign(target, 1, found.append)
    campaign.run(1)
    target.close()
    assert campaign.num_findings
    assert kind in found[0]


def test_a_finding_is_shown_once_and_made_smaller() -> None:
    found: list[str] = []
    campaign = Campaign(_Planted("x"), 1, found.append)
    campaign.run(3)
    assert (len(found), campaign.num_findings) == (1, 3)
    assert "input 0, made smaller: 'x'" in found[0]


def test_each_part_of_a_tuple_is_made_smaller() -> None:
    assert shrunk(("abc", b"xyzz"), lambda it: "b" in it[0] and b"z" in it[1]) == ("b", b"z")


@given(st.text(max_size=60))
@settings(max_examples=200)
def test_any_text_is_parsed_or_rejected(text: str) -> None:
    try_quantity(text)
    try_label_selector(text)
    try_field_selector(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda each: (
        st.lists(each, max_size=3) | st.dictionaries(st.text(max_size=10), each, max_size=3)
    ),
    max_leaves=10,
)


@given(st.sampled_from(sorted(SAMPLES)), st.sampled_from(["metadata", "spec", "status"]), JSON)
@settings(max_examples=100)
def test_any_json_is_decoded_or_rejected(kind: str, part: str, value: Any) -> None:
    trial = EngineTrial()
    trial.try_object(kind, json.dumps({**SAMPLES[kind], part: value}).encode())


def test_zero_with_a_huge_exponent_is_parsed_quickly() -> None:
    assert quantity_value("0e2147483647") == 0
    assert parse_quantity("0E9999999999").milli_value() == 0


@pytest.mark.parametrize("text", ["9" * 20_000, "x" * 1_000_000])
def test_an_error_quotes_a_part_of_a_long_text(text: str) -> None:
    with pytest.raises(QuantityError) as refusal:
        parse_quantity(text)
    assert len(str(refusal.value)) < MAX_SHOWN + 200


@pytest.mark.parametrize("value", ["x" * 2**20, ["x"] * 2**18, {str(n): n for n in range(2**16)}])
def test_an_error_quotes_a_part_of_a_value_of_a_megabyte(value: Any) -> None:
    data = json.dumps({"metadata": {"name": "p"}, "spec": {"priority": value}}).encode()
    with pytest.raises(InvalidObject) as refusal:
        decode_object(Pod, data)
    assert refusal.value.field == "spec.priority"
    assert len(str(refusal.value)) < MAX_MESSAGE


def test_an_object_that_nests_too_deep_is_rejected_by_every_decoder() -> None:
    pod = b'{"metadata": {"annotations": {"a": ' + TOO_DEEP + b"}}}"
    with pytest.raises(InvalidObject, match="expected JSON; it is nested too deeply"):
        decode_object(Pod, pod)
    with pytest.raises(InvalidObject, match="it is nested too deeply"):
        decode_list(Pod, b'{"items": [' + pod + b"]}")
    with pytest.raises(InvalidObject, match="it is nested too deeply"):
        decode_watch_event(Pod, b'{"type": "ADDED", "object": ' + pod + b"}")


@pytest.mark.parametrize(
    ("kind", "value", "field"),
    [
        (Pod, {"spec": {"priority": 10**30}}, "spec.priority"),
        (Pod, {"spec": {"overhead": {"cpu": -(2**63) - 1}}}, "spec.overhead[...]"),
        (Node, {"status": {"images": [{"sizeBytes": 2**63}]}}, "status.images[0].sizeBytes"),
        (CSINode, {"spec": {"drivers": [HUGE_DRIVER]}}, "spec.drivers[0].allocatable.count"),
    ],
)
def test_an_integer_of_more_than_64_bits_is_rejected_with_its_field(
    kind: type[Any], value: Any, field: str
) -> None:
    with pytest.raises(InvalidObject) as refusal:
        decode_object(kind, json.dumps(value).encode())
    assert refusal.value.field == field


@pytest.mark.parametrize("kind", ["Pod", "Node", "CSINode", "PersistentVolume", "VolumeAttachment"])
def test_an_object_without_a_name_is_reported_and_ignored(kind: str) -> None:
    trial = EngineTrial()
    metadata = {**SAMPLES[kind]["metadata"], "name": ""}
    assert trial.try_object(kind, json.dumps({**SAMPLES[kind], "metadata": metadata}).encode())
    trial.check()


def test_an_attachment_without_a_node_is_reported_and_ignored() -> None:
    trial = EngineTrial()
    data = json.dumps({"metadata": {"name": "a"}, "spec": {"nodeName": ""}}).encode()
    assert trial.try_object("VolumeAttachment", data)
    trial.check()
