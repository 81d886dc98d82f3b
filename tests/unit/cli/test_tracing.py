"""OpenTelemetry is optional: not imported unless it is asked for, and missed clearly."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S
from stowage.api.config.loading import load_configuration
from stowage.cli import composition
from stowage.cli.main import app

HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def _configuration(folder: Path, rate: int) -> Path:
    file = folder / "config.yaml"
    file.write_text(f"{HEADER}tracing:\n  samplingRatePerMillion: {rate}\n")
    return file


def test_opentelemetry_is_not_imported_without_traces() -> None:
    program = (
        "import sys; from stowage.cli import composition; "
        "from stowage.api.config.loading import load_configuration; "
        "composition.run_options(load_configuration(), None, None, 300.0); "
        "print([each for each in sys.modules if each.startswith(('opentelemetry', 'grpc'))])"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=WAIT_TIMEOUT_S,
    )
    assert answer.stdout == "[]\n"


def test_a_rate_without_opentelemetry_names_the_field_and_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(composition, "is_opentelemetry_installed", lambda: False)
    file = _configuration(tmp_path, 100)
    answer = CliRunner().invoke(app, ["run", f"--config={file}"])
    assert answer.exit_code == 1
    output = " ".join(answer.output.split())
    assert "tracing.samplingRatePerMillion" in output
    assert "Stowage's extra tracing has it" in output


def test_a_rate_of_zero_needs_no_opentelemetry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(composition, "is_opentelemetry_installed", lambda: False)
    options = composition.run_options(load_configuration(), None, None, 300.0)
    assert options.tracing is None


def test_a_file_that_asks_for_traces_can_be_checked_without_opentelemetry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(composition, "is_opentelemetry_installed", lambda: False)
    answer = CliRunner().invoke(app, ["config", "check", str(_configuration(tmp_path, 100))])
    assert answer.exit_code == 0, answer.output
