"""The benchmark of steps, with small shapes on a small cluster."""

from __future__ import annotations

import msgspec
import pytest
from typer.testing import CliRunner

from stowage.cli.main import app
from stowage_benchmarks.steps.catalogue import SHAPES
from stowage_benchmarks.steps.run import measure_shape
from stowage_benchmarks.steps.shapes.shape import Size

_SIZE = Size(nodes=100, share=0.002)
_NONE_BOUND = (
    "preemption of 1,000 pods of a node, 100 budgets",
    "preemption on full nodes, 100 budgets",
    "matchAttribute that no node satisfies, 8 devices a node",
    "CEL on attributes that all differ, 8 devices a node",
    "slices of all nodes arrive, then the first CEL selector",
    "a waiting gang of 10,000 deleted",
    "100,000 pods are flushed after five minutes",
    "50,000 local volumes, one unbound claim",
)
"""Shapes whose pods find no node, or wait for writes that the benchmark does not answer."""
_NAME = "a configuration with 32 profiles"


@pytest.mark.parametrize("shape", SHAPES)
def test_each_shape_passes_through_the_loop(shape: str) -> None:
    result = measure_shape(shape, _SIZE)
    assert result.shape == shape
    assert 0 <= result.part_ms <= result.step_ms
    assert result.kind
    assert (result.bound > 0) == (shape not in _NONE_BOUND)


def test_the_report_can_be_printed_as_json() -> None:
    outcome = _run("--json")
    assert outcome[0] == 0, outcome[1]
    report = msgspec.json.decode(outcome[1])
    assert [each["shape"] for each in report["shapes"]] == [_NAME]
    assert report["nodes"] == 100


def test_a_longer_step_than_the_limit_fails_the_command() -> None:
    assert _run("--limit-ms", "0")[0] == 1
    assert _run("--limit-ms", "100000")[0] == 0


def test_the_table_names_the_limit() -> None:
    _, output = _run("--limit-ms", "9999")
    assert "limit" in output
    assert "9999" in output


def test_the_error_names_a_shape_that_does_not_exist() -> None:
    outcome = CliRunner().invoke(app, ["bench", "steps", "--shape", "round"])
    assert outcome.exit_code == 2
    assert "round" in outcome.output


def _run(*flags: str) -> tuple[int, str]:
    arguments = ["bench", "steps", "--nodes", "100", "--share", "0.002", "--shape", _NAME]
    outcome = CliRunner().invoke(app, [*arguments, *flags])
    return outcome.exit_code, outcome.stdout
