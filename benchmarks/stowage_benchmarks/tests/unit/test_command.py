"""``stowage bench`` itself."""

from __future__ import annotations

import sys

import pytest
from typer.testing import CliRunner

from stowage_benchmarks.command import app


def test_a_benchmark_that_reads_proc_is_refused_on_other_systems_than_linux(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    result = CliRunner().invoke(app, ["e2e"])
    assert result.exit_code == 2
    assert "'e2e' reads CPU time and memory from /proc, which only Linux has." in result.output


def test_benchmarks_of_the_engine_alone_run_on_every_system(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    result = CliRunner().invoke(app, ["core", "--nodes=100", "--pods=10", "--workload=basic"])
    assert result.exit_code == 0, result.output
