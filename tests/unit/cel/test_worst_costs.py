"""The worst cost of a selector is the one by which kube-apiserver refuses it."""

from __future__ import annotations

import pytest

from stowage.cel import COST_LIMIT, CelCompileError, compile_selector
from stowage.cel.estimation import worst_selector_cost
from tests.conformance.value_themes import VECTORS, read_rows

ROWS = read_rows(VECTORS / "helper-cel.jsonl.gz")
COMPILED = [row for row in ROWS if "maxCost" in row["result"]]
HUGE = 2**53
UNKNOWN = 2**64 - 1


@pytest.mark.parametrize("row", COMPILED, ids=lambda row: row["case"]["id"])
def test_worst_costs_are_as_recorded(row: dict[str, dict[str, object]]) -> None:
    cost = worst_selector_cost(str(row["case"]["expression"]))
    assert ("huge" if cost > HUGE else cost) == row["result"]["maxCost"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["case"]["id"])
def test_the_api_server_accepts_what_compiles_and_stays_within_the_limit(
    row: dict[str, dict[str, object]],
) -> None:
    try:
        accepted = worst_selector_cost(str(row["case"]["expression"])) <= COST_LIMIT
    except CelCompileError:
        accepted = False
    assert accepted is row["result"]["accepted"]


@pytest.mark.parametrize(
    ("expression", "cost"),
    [
        # An attribute takes 4 steps: ``device``, ``attributes``, the domain, the name.
        # A value has at most 64 characters, a name 32, a domain 63, a device 32 attributes.
        ('device.attributes["d"].model.startsWith("a")', 4 + 1),
        ('device.attributes["d"].model.contains("aaaaaaaaaaa")', 4 + 7 * 2),
        ('device.attributes["d"].model.matches("^a.*")', 4 + 7 * 1),
        ('device.attributes["d"].model.lowerAscii() == "a"', 4 + 7 + 1),
        (
            'device.attributes["d"].all(name, name != "abcdefghijk")',
            3 + 32 * (1 + 1 + 1 + 1 + 2) + 1,
        ),
        (
            'device.attributes.all(domain, domain in ["a", "b"])',
            2 + 32 * (1 + 1 + 1 + 1 + 10 + 2) + 1,
        ),
        ("device.attributes.all(d, t, t.size() > 0)", 2 + 32 * (1 + 1 + 1 + 1 + 1 + 1) + 1),
        ('device.capacity["d"]["memory"] != quantity("1Gi")', 4 + 1),
        ('device.attributes["d"].?model.orValue("") == "a"', 2 + 1 + 1 + 1 + 1),
        ('cel.bind(a, device.attributes["d"], a.x == a.y)', 10 + 3 + 2 * 2 + 7),
        ('device.attributes["d"].model.replace("a", "bb").size() > 0', 4 + 13 + 1 + 1),
        ('"a-b".split("-").all(part, part == "a")', 1 + 3 * (1 + 1 + 1 + 1 + 1) + 1),
        ('("a" + device.driver).startsWith("a")', 2 + 7 + 1),
        ("([1, 2] + [3]).all(x, x > 0)", 10 + 10 + 1 + 3 * (2 + 1 + 1 + 1) + 1),
        ("(true ? [1] : [1, 2]).all(x, x > 0)", 10 + 2 * (2 + 1 + 1 + 1) + 1),
        ('bytes("aaaaaaaaaaa").size() == 44', 2 + 1 + 1),
        ('string(b"aaaaaaaaaaa").size() == 11', 2 + 1 + 1),
        ('strings.quote("aaaaaaaaa") == "a"', 1 + 1),
        ('cidr("10.0.0.0/8").containsIP("10.0.0.1")', 1 + 4 + 1),
        ('cidr("10.0.0.0/8").containsCIDR(cidr("10.0.0.0/9"))', 1 + 1 + 4 + 2 + 1),
        ("lists.range(5).size() == 5", 5 + 1 + 10 + 1 + 1),
        ("[3, 1, 2].sort().size() == 3", 10 + (9 * 2 + 11) + 1 + 1),
        ('["b", "a"].sort().size() == 2', 10 + (9 + 11) + 1 + 1),
        ("[1, 2, 3].slice(1, 2).size() == 1", 10 + 1 + 11 + 1 + 1),
        ("[[1], [2]].flatten().size() == 2", 10 + 10 + 10 + 2 + 11 + 1 + 1),
        ("[1, 1].distinct().size() == 1", 10 + (4 * 2 + 11) + 1 + 1),
        ("[1, 2].reverse().size() == 2", 10 + (2 + 11) + 1 + 1),
        ("sets.contains([1, 2], [1, 2])", 10 + 10 + 4 + 1),
        ("sets.equivalent([1, 2], [1, 2])", 10 + 10 + 2 * 4 + 1),
        ('url("https://a") == url("https://b")', 1 + 1 + 1),
        ('format.dns1123Label().validate("abc").hasValue()', 1 + 32 + 1),
        ("[1, 2].sum() > 0", 10 + 2 + 1),
        ("dyn([1]).all(x, x == 1)", 10 + 1 + 1 * (1 + 1 + 1 + 1 + 1) + 1),
        ('{"a": "bc"}["a"] == "b"', 30 + 1 + 1),
    ],
)
def test_a_worst_cost_follows_from_the_limits_of_devices(expression: str, cost: int) -> None:
    assert worst_selector_cost(expression) == cost


@pytest.mark.parametrize(
    "expression",
    [
        'device.capacity["d"].memory != quantity("1Gi")',
        "type(1) == int",
        '["b", "a"].isSorted()',
        '["a", "b"].join("-") == "a-b"',
        'device.attributes["d"].?model.optMap(m, m + "!").orValue("") == "a!"',
    ],
)
def test_what_has_no_greatest_size_is_above_every_limit(expression: str) -> None:
    assert worst_selector_cost(expression) > UNKNOWN // 100


def test_a_selector_that_does_not_compile_has_no_cost() -> None:
    with pytest.raises(CelCompileError) as of_estimate:
        worst_selector_cost("device.nosuch")
    with pytest.raises(CelCompileError) as of_compiler:
        compile_selector("device.nosuch")
    assert str(of_estimate.value) == str(of_compiler.value)


def test_an_expression_that_is_nested_too_deeply_has_no_cost() -> None:
    with pytest.raises(CelCompileError):
        worst_selector_cost("[" * 300 + "]" * 300 + ".size() == 1")


def test_an_optional_that_is_mapped_many_times_is_estimated_once_a_step() -> None:
    mapped = ".optMap(x, x)" * 40
    assert worst_selector_cost(f"optional.of(1){mapped}.orValue(1) == 1") < UNKNOWN
