"""Verdicts shared by devices that agree equal the evaluation of each device on its own.

Random slices come and go. After each change, the verdicts about all signatures, and where devices
match in an attribute, must be those of a loop that evaluates every device by itself.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from stowage.api.objects.device import ResourceSlice
from stowage.cel import CelCompileError, CelRuntimeError, compile_selector
from stowage.plugins.dynamic_resources.matching_devices import MatchingDevices
from stowage.state import ClusterCache
from stowage.state.devices.device_info import UNKNOWN_VALUE, Signature
from stowage.state.devices.devices import Devices
from stowage.state.devices.expressions import cel_device
from stowage.state.devices.published_columns import dense
from stowage.state.devices.selection import FAILS, NO, YES, Selectors, select_signatures
from tests.support.builders import make_node
from tests.support.device_builders import DRIVER, make_slice, quantities

NODES = ("a", "b", "c")
OWN, OTHER = f'device.attributes["{DRIVER}"]', 'device.attributes["other.example.org"]'
EXPRESSIONS = (
    "true",
    f'device.driver == "{DRIVER}"',
    "device.allowMultipleAllocations",
    f'{OWN}.model == "x"',
    f'"x" != {OWN}.model',
    f'{OWN}.model in ["x", "yy"]',
    f'{OWN}.model == "x" || {OWN}.model.startsWith("y")',
    f'{OWN}.model == "x" && {OTHER}.model == "x"',
    f"size({OWN}.model) == 2",
    f"{OWN}.model == 1",
    f"{OWN}.model == {OTHER}.model",
    f"has({OWN}.model)",
    f'{OWN}.?model.orValue("x") == "x"',
    f'{OWN}[?"model"] == optional.of("x")',
    f'cel.bind(own, {OWN}, own.model == "x" || own.serial == "x")',
    f'cel.bind(serial, {OWN}.serial, {OWN}.model == "x")',
    f'cel.bind(device, {OWN}, device.model == "x")',
    f'["model", "serial"].exists(name, {OWN}[name] == "x")',
    f'["x"].exists(each, each == {OWN}.model)',
    '["x"].exists(device, device == "x")',
    f'"model" in {OWN}',
    '"other.example.org" in device.attributes',
    f'(has({OWN}.model) ? {OWN} : {OTHER}).model == "x"',
    f'{OWN}.version.isGreaterThan(semver("1.0.0"))',
    f'device.capacity["{DRIVER}"].memory.isGreaterThan(quantity("20Gi"))',
    f"{OWN}.no.such.field",
    "not an expression",
)
TEXTS = ("x", "y", "z", "yy", "zz", "")
NAMES = ("model", f"{DRIVER}/model", "other.example.org/model", "serial", "version")


TEXT = st.sampled_from(TEXTS).map(lambda text: {"string": text})
ODD: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    ({"int": 0}, {"int": 1}, {"bool": True}, {"version": "2.0.0"}, {})
)


@st.composite
def _attributes(draw: st.DrawFn) -> dict[str, Any]:
    """Mostly a model of a few, so that devices agree in some attributes and differ in others."""
    attributes = {"model": draw(TEXT)}
    for name in draw(st.lists(st.sampled_from(NAMES), max_size=2)):
        attributes[name] = draw(TEXT)
    if draw(st.integers(0, 5)) == 0:
        attributes[draw(st.sampled_from(NAMES))] = draw(ODD)
    if draw(st.integers(0, 5)) == 0:
        attributes["version"] = {"version": draw(st.sampled_from(("1.0.0", "2.0.0", "none")))}
    if draw(st.integers(0, 5)) == 0:
        del attributes["model"]
    return attributes


@st.composite
def _slices(draw: st.DrawFn) -> ResourceSlice:
    devices = []
    for number, attributes in enumerate(draw(st.lists(_attributes(), min_size=1, max_size=8))):
        device: dict[str, Any] = {"name": f"d{number}", "attributes": attributes}
        if draw(st.integers(0, 4)) == 0:
            device["capacity"] = quantities({"memory": draw(st.sampled_from(("10Gi", "40Gi")))})
        if draw(st.integers(0, 4)) == 0:
            device["allowMultipleAllocations"] = True
        devices.append(device)
    driver = draw(st.sampled_from((DRIVER, DRIVER, "other.example.org")))
    return make_slice(draw(st.sampled_from(NODES)), devices, driver=driver)


def _verdict_alone(expressions: tuple[str, ...], signature: Signature) -> int:
    """The scalar twin: nothing is shared between devices."""
    for text in expressions:
        try:
            if not _compiled(text).matches(cel_device(signature)):
                return NO
        except (CelRuntimeError, CelCompileError):
            return FAILS
    return YES


_compiled = lru_cache(compile_selector)


def _check_verdicts(devices: Devices, expressions: tuple[str, ...], selectors: Selectors) -> None:
    columns = devices.slices.columns
    expected = [
        NO if each is None else _verdict_alone(expressions, each)
        for each in columns.signatures.values
    ]
    assert select_signatures(selectors, expressions, columns).tolist() == expected


def _check_matching(devices: Devices, attributes: tuple[str, ...], num_rows: int) -> None:
    columns = devices.slices.columns
    matching = MatchingDevices(columns, attributes)
    everything = np.ones(columns.num_rows, dtype=np.bool_)
    pairs: dict[tuple[int, Any], int] = {}
    odd: set[int] = set()
    for info in devices.slices:
        for device in info.devices:
            found = tuple(device.signature.attribute(name) for name in attributes)
            if None not in found:
                place = (info.holds_row, found)
                pairs[place] = pairs.get(place, 0) + 1
                if UNKNOWN_VALUE in found:
                    odd.add(info.holds_row)
    wanted = {row for (row, _), number in pairs.items() if number >= 2}
    have = matching.have_enough([(everything, 2)], num_rows)
    assert set(have.nonzero()[0].tolist()) == wanted
    odd_rows = matching.odd_rows([(everything, 1)], num_rows)
    assert set(odd_rows.nonzero()[0].tolist()) == odd


SELECTIONS = st.tuples(st.sampled_from(EXPRESSIONS), st.sampled_from(EXPRESSIONS))
MATCHES = st.lists(
    st.sampled_from((f"{DRIVER}/model", f"{DRIVER}/serial", "other.example.org/model")),
    min_size=1,
    max_size=2,
    unique=True,
).map(tuple)
STEPS = st.lists(
    st.tuples(st.one_of(_slices(), st.sampled_from(NODES)), SELECTIONS, MATCHES),
    min_size=1,
    max_size=4,
)


@given(STEPS)
@settings(max_examples=100, deadline=None)
def test_verdicts_and_matches_of_all_devices_are_those_of_each_alone(
    steps: list[tuple[ResourceSlice | str, tuple[str, ...], tuple[str, ...]]],
) -> None:
    cache, selectors = ClusterCache(), Selectors()
    for name in NODES:
        cache.update_node(make_node(name))
    for change, expressions, attributes in steps:
        if isinstance(change, str):
            cache.remove_device_object(ResourceSlice, f"{change}-slice")
        else:
            cache.update_device_object(change)
        snapshot = cache.snapshot()
        for each in (*((text,) for text in EXPRESSIONS), expressions):
            _check_verdicts(snapshot.devices, each, selectors)
        _check_matching(snapshot.devices, attributes, snapshot.num_rows)


@given(st.lists(st.integers(0, 9), max_size=20), st.sampled_from((10, 4_000_001)))
def test_dense_numbers_keep_the_order_and_leave_no_gap(keys: list[int], width: int) -> None:
    numbers, count = dense(np.array(keys, dtype=np.int64), width)
    order = sorted(set(keys))
    assert (numbers.tolist(), count) == ([order.index(key) for key in keys], len(order))
