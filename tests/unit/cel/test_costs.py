"""The cost of an evaluation is the one that kube-scheduler counts."""

from __future__ import annotations

import pytest

from stowage.cel import Device, Version, compile_selector
from tests.conformance.value_themes import VECTORS, read_rows
from tests.support.devices import cel_device

DEVICE = Device("d", {"model": "a100", "version": Version("1.2.3")}, {"memory": "80Gi"})

ANSWERED = [
    row
    for row in read_rows(VECTORS / "helper-cel.jsonl.gz")
    if row["result"]["outcome"] in ("true", "false")
]


def ends_early(expression: str) -> bool:
    """Whether a loop over a map may stop at any of its elements: Go has no order of maps."""
    return "exists(" in expression and "device.attributes" in expression


@pytest.mark.parametrize("row", ANSWERED, ids=lambda row: row["case"]["id"])
def test_costs_are_as_recorded(row: dict[str, dict[str, object]]) -> None:
    case, result = row["case"], row["result"]
    expression = str(case["expression"])
    _, cost = compile_selector(expression).evaluate(cel_device(case["device"]))  # type: ignore[arg-type]
    assert cost == result["cost"] or ends_early(expression)


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        ("true", 0),
        ("device.allowMultipleAllocations", 2),
        ('device.attributes["d"].model == "a100"', 4 + 1),
        ('has(device.attributes["d"].model)', 3),
        ('device.attributes["d"].?nosuch.orValue("x") == "x"', 3 + 1),
        ("[1, 2, 3].all(x, x > 0)", 3 * (2 + 1 + 2) + 1),
        ("[1, 2, 3].exists(x, x == 2)", 2 * (3 + 1 + 2) + 3 + 1),
        ("[1, 2].map(x, x) == [1, 2]", 2 * (1 + 10 + 1 + 1) + 1 + 1),
        ("[1, 2].filter(x, x > 1) == [2]", 2 * 2 + (1 + 10 + 1 + 1) + 1 + 1),
        ('"a" in ["a", "b"] && device.driver in [device.driver]', 2 + 2 + 10 + 1),
        ("cel.bind(x, [1], x == x)", 2 + 1),
        ("[3, 1, 2].sort() == [1, 2, 3]", (9 * 2 + 11) + 1),
        ('"aaaaaaaaaa" + "b" == "c"', 2 + 1),
        ("true ? device.allowMultipleAllocations : false", 1),
    ],
)
def test_costs_follow_the_plan_of_cel_go(expression: str, want: int) -> None:
    assert compile_selector(expression).evaluate(DEVICE)[1] == want
