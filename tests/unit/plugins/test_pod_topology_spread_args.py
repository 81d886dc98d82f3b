"""PodTopologySpread: arguments."""

from __future__ import annotations

from typing import Any

import pytest

from stowage.framework.profile.profile import decode_args
from stowage.plugins.pod_topology_spread import PodTopologySpreadArgs
from tests.support.builders import ZONE


def listed(**fields: Any) -> dict[str, Any]:
    good = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"}
    return {"defaultingType": "List", "defaultConstraints": [good | fields]}


ARGS_CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "an empty entry means the built-in defaults": ({}, []),
    "a list of constraints": (listed(), []),
    "another defaulting type": (
        {"defaultingType": "None"},
        ['args.defaultingType: "None" (expected "System" or "List")'],
    ),
    "constraints beside the built-in defaults": (
        listed() | {"defaultingType": "System"},
        ['args.defaultingType: "System" (expected "List" where defaultConstraints are not empty)'],
    ),
    "a skew of zero": (
        listed(maxSkew=0),
        ["args.defaultConstraints[0].maxSkew: 0 (expected a whole number greater than 0)"],
    ),
    "some other action": (
        listed(whenUnsatisfiable="Never"),
        [
            (
                'args.defaultConstraints[0].whenUnsatisfiable: "Never" '
                '(expected "DoNotSchedule" or "ScheduleAnyway")'
            )
        ],
    ),
    "a selector": (
        listed(labelSelector={"matchLabels": {"app": "web"}}),
        [
            (
                'args.defaultConstraints[0].labelSelector: {"matchLabels":{"app":"web"}} '
                "(expected none, for the selector is found for each pod)"
            )
        ],
    ),
    "the same key and action twice": (
        {"defaultingType": "List", "defaultConstraints": listed()["defaultConstraints"] * 2},
        [
            (
                'args.defaultConstraints[1]: ["topology.kubernetes.io/zone","ScheduleAnyway"] '
                "(expected a topologyKey and whenUnsatisfiable that no other entry has)"
            )
        ],
    ),
}


@pytest.mark.parametrize("sentence", ARGS_CASES)
def test_an_invalid_argument_is_named_with_what_is_expected(sentence: str) -> None:
    given, want = ARGS_CASES[sentence]
    _, errors = decode_args(PodTopologySpreadArgs, given, "args")
    assert [str(error) for error in errors] == want


def test_a_topology_key_must_be_a_valid_label_key() -> None:
    _, errors = decode_args(PodTopologySpreadArgs, listed(topologyKey="no good"), "args")
    assert [error.path for error in errors] == ["args.defaultConstraints[0].topologyKey"]
