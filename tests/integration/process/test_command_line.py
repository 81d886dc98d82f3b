"""Help texts of the commands, and the packages that they import."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from stowage.cli.main import app

COMMANDS = ["run", "cluster", "demo", "bench", "bench e2e", "config", "config check"]


def test_help_lists_the_commands_and_examples() -> None:
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    for words in ("run", "demo", "cluster", "bench", "config", "Examples"):
        assert words in result.stdout


def test_help_shows_examples_of_installed_commands_only() -> None:
    code = (
        "import importlib.metadata; importlib.metadata.entry_points = lambda **_group: (); "
        "from stowage.cli.main import app; app(['--help'])"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    )
    assert "stowage run --kubeconfig" in answer.stdout
    assert "demo" not in answer.stdout


def test_help_of_run_shows_whole_flags_in_a_narrow_terminal() -> None:
    result = CliRunner().invoke(app, ["run", "--help"], env={"COLUMNS": "80"})
    assert "--authorization-webhook-cache-unauthorized-ttl DURATION" in result.stdout
    assert "Leader election:" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_help_text(command: str) -> None:
    result = CliRunner().invoke(app, [*command.split(), "--help"])
    assert result.exit_code == 0
    assert f"stowage {command}" in result.stdout.replace("root", "stowage")


def test_an_unknown_workload_is_refused_with_the_known_ones() -> None:
    result = CliRunner().invoke(app, ["bench", "e2e", "--workload=heavy"], env={"COLUMNS": "300"})
    assert result.exit_code == 2
    assert "preferred-spread" in result.stderr


def test_help_does_not_import_heavy_packages() -> None:
    code = (
        "import sys; import stowage.cli.main; "
        "print([name for name in ('kopf', 'kubernetes', 'numpy') if name in sys.modules])"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    )
    assert answer.stdout.strip() == "[]"


def test_a_command_of_the_scheduler_itself_needs_no_look_at_other_distributions() -> None:
    code = (
        "import importlib.metadata; importlib.metadata.entry_points = None; "
        "from stowage.cli.main import app; app(['run', '--help'])"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    )
    assert "--leader-elect" in answer.stdout


def test_a_misspelt_command_of_another_distribution_is_suggested() -> None:
    result = CliRunner().invoke(app, ["bnch"])
    assert result.exit_code == 2
    assert "Did you mean 'bench'?" in result.stderr


def test_a_command_of_a_distribution_that_is_missing_names_it() -> None:
    code = (
        "import importlib.metadata; importlib.metadata.entry_points = lambda **_group: (); "
        "from stowage.cli.main import app; app(['bench', '--help'])"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=False, text=True
    )
    assert answer.returncode == 2
    assert "'bench' needs the package stowage-benchmarks" in answer.stderr


def test_the_program_imports_its_commands_without_garbage_collection() -> None:
    code = (
        "import gc, sys; from stowage.cli.program import main; "
        "sys.argv = ['stowage', '--version']; gc.collect(); "
        "gc.callbacks.append(lambda *_: print('collects', 'stowage.cli.main' in sys.modules)); "
        "gc.set_threshold(100); main()"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    )
    assert "stowage 0" in answer.stdout
    assert "collects False" not in answer.stdout


def test_run_imports_no_other_command() -> None:
    code = (
        "import sys; from stowage.cli.main import app; "
        "app(['run', '--help'], standalone_mode=False); "
        "print([name for name in sys.modules if name.startswith('stowage.cli.')])"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    )
    loaded = answer.stdout.splitlines()[-1]
    assert "'stowage.cli.run'" in loaded
    for other in ("bench", "cluster", "demo", "dump", "config"):
        assert f"'stowage.cli.{other}'" not in loaded


def test_the_error_for_a_mistyped_command_suggests_the_right_one() -> None:
    result = CliRunner().invoke(app, ["clutser"])
    assert result.exit_code == 2
    assert "Did you mean 'cluster'?" in result.stderr
