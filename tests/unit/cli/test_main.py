"""Help is there for every command, without loading the heavy rooms."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from scheduler.cli.main import app

COMMANDS = ["run", "cluster", "demo", "bench", "bench e2e", "config", "config check"]


def test_the_commands_are_listed_with_examples() -> None:
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    for words in ("run", "demo", "cluster", "bench", "config", "Examples"):
        assert words in result.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str) -> None:
    result = CliRunner().invoke(app, [*command.split(), "--help"])
    assert result.exit_code == 0
    assert f"stowage {command}" in result.stdout.replace("root", "stowage")


def test_an_unknown_workload_is_refused_with_the_known_ones() -> None:
    result = CliRunner().invoke(app, ["bench", "e2e", "--workload=heavy"], env={"COLUMNS": "300"})
    assert result.exit_code == 2
    assert "preferred-spread" in result.stderr


def test_help_does_not_wait_for_the_kubernetes_client() -> None:
    code = (
        "import sys; import scheduler.cli.main; "
        "print([name for name in ('kopf', 'kubernetes', 'numpy') if name in sys.modules])"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    )
    assert answer.stdout.strip() == "[]"
