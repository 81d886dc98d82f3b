"""The log lines of an attempt."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from stowage.api.decisions import BestNodes
from stowage.api.instructions import AttemptResult, PodReference
from stowage.operator.attempt_log import log_attempt
from stowage.operator.logging.verbosity import set_verbosity

BEST = BestNodes(("a", "b", "c", "d"), (7, 6, 5, 4), (("Fit", 2),), (), b"", {"Fit": ((3,), (3,))})
ATTEMPT = AttemptResult(
    PodReference("default", "p", "uid"), "scheduled", "stowage", 1, node_name="a", best=BEST
)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    yield
    set_verbosity(0)


def logged(attempt: AttemptResult, verbosity: int) -> list[dict[str, object]]:
    set_verbosity(verbosity)
    with capture_logs() as lines:
        log_attempt(attempt, "id-1")
    return [dict(line) for line in lines]


def test_a_scheduled_attempt_is_one_line() -> None:
    attempt = replace(ATTEMPT, evaluated_nodes=9, feasible_nodes=4, configuration="hash")
    assert logged(attempt, 9) == [
        {
            "event": "scheduled",
            "log_level": "info",
            "pod": "default/p",
            "node": "a",
            "evaluated_nodes": 9,
            "feasible_nodes": 4,
            "attempts": 1,
            "configuration": "hash",
            "decision": "id-1",
        }
    ]


def test_an_attempt_that_fails_is_one_line_with_the_reason() -> None:
    attempt = replace(
        ATTEMPT,
        result="unschedulable",
        message="no node",
        unschedulable_plugins=("Fit",),
        configuration="hash",
    )
    assert logged(attempt, 9) == [
        {
            "event": "unschedulable",
            "log_level": "info",
            "pod": "default/p",
            "message": "no node",
            "plugins": ("Fit",),
            "attempts": 1,
            "configuration": "hash",
            "decision": "id-1",
        }
    ]


def test_a_slow_attempt_has_a_line_with_its_steps() -> None:
    slow = AttemptResult(
        PodReference("default", "p", "uid"),
        "unschedulable",
        "stowage",
        1,
        duration_s=0.25036,
        steps=(("Filter", 0.2), ("PostFilter", 0.05)),
    )
    _, line = logged(slow, 0)
    assert line == {
        "event": "slow scheduling cycle",
        "log_level": "info",
        "pod": "default/p",
        "duration_ms": 250.4,
        "steps_ms": {"Filter": 200.0, "PostFilter": 50.0},
    }


def test_at_verbosity_10_the_three_best_nodes_are_logged() -> None:
    _, *lines = logged(ATTEMPT, 10)
    assert {line["pod"] for line in lines} == {"default/p"}
    assert [(line["event"], line["node"], line["total"]) for line in lines] == [
        ("node scored", "a", 7),
        ("node scored", "b", 6),
        ("node scored", "c", 5),
    ]
    assert lines[0]["scores"] == {"Fit": 6}
