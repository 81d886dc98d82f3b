"""Help texts of the commands, and the packages that they import."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stowage.cli.main import app

COMMANDS = ["run", "cluster", "demo", "bench", "bench e2e", "config", "config check"]


def _python(code: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Run code in an interpreter of its own, which must end with this status."""
    command = [sys.executable, "-c", code]
    ended = subprocess.run(command, capture_output=True, check=False, text=True)
    assert ended.returncode == status, ended.stderr
    return ended


def test_help_lists_the_commands_and_examples() -> None:
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    for words in ("run", "demo", "cluster", "bench", "config", "Examples"):
        assert words in result.stdout


def test_the_package_is_a_program_with_the_same_commands() -> None:
    command = [sys.executable, "-m", "stowage", "config", "--help"]
    answer = subprocess.run(command, capture_output=True, check=True, text=True)
    assert "Usage: python -m stowage config" in answer.stdout


def test_help_shows_examples_of_installed_commands_only() -> None:
    code = (
        "import importlib.metadata; importlib.metadata.entry_points = lambda **_group: (); "
        "from stowage.cli.main import app; app(['--help'])"
    )
    answer = _python(code)
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
    answer = _python(code)
    assert answer.stdout.strip() == "[]"


def test_a_command_of_the_scheduler_itself_needs_no_look_at_other_distributions() -> None:
    code = (
        "import importlib.metadata; importlib.metadata.entry_points = None; "
        "from stowage.cli.main import app; app(['run', '--help'])"
    )
    answer = _python(code)
    assert "--leader-elect" in answer.stdout


def test_a_command_of_a_distribution_that_is_missing_names_it() -> None:
    code = (
        "import importlib.metadata; importlib.metadata.entry_points = lambda **_group: (); "
        "from stowage.cli.main import app; app(['bench', '--help'])"
    )
    answer = _python(code, status=2)
    assert "'bench' needs the package stowage-benchmarks" in answer.stderr


def test_the_program_imports_its_commands_without_garbage_collection() -> None:
    code = (
        "import gc, sys; from stowage.cli.program import main; "
        "sys.argv = ['stowage', '--version']; gc.collect(); "
        "imported = lambda: hasattr(sys.modules.get('stowage.cli.main'), 'app'); "
        "gc.callbacks.append(lambda *_: imported() or print('collects too early')); "
        "gc.set_threshold(100); main()"
    )
    answer = _python(code)
    assert "stowage 0" in answer.stdout
    assert "collects too early" not in answer.stdout


def test_an_interrupt_during_the_imports_ends_without_a_traceback() -> None:
    code = (
        "import signal, sys; from stowage.cli.program import main; "
        "find = lambda name, *_: name == 'typer' and signal.raise_signal(signal.SIGINT) or None; "
        "sys.meta_path.insert(0, type('Interrupts', (), {'find_spec': staticmethod(find)})); main()"
    )
    assert _python(code, status=130).stderr == ""


def test_sigterm_during_the_start_ends_the_first_process_of_a_container() -> None:
    """The kernel drops signals to process 1 that have no handler, so here SIGTERM is ignored."""
    code = (
        "import os, signal, sys; from stowage.cli.program import main; os.getpid = lambda: 1; "
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        "find = lambda name, *_: name == 'typer' and signal.raise_signal(signal.SIGTERM) or None; "
        "sys.meta_path.insert(0, type('Stops', (), {'find_spec': staticmethod(find)})); "
        "sys.argv = ['stowage', '--version']; main()"
    )
    answer = _python(code, status=143)
    assert (answer.stdout, answer.stderr) == ("", "")


NODES = [{"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "1"}}}]
WORKLOAD = {"apiVersion": "stowage.dev/v1alpha1", "kind": "Workload", "metadata": {"name": "w"}}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "nodes").write_text(json.dumps(NODES), encoding="utf-8")
    (tmp_path / "workload").write_text(json.dumps(WORKLOAD), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "command",
    ["--help", "config show", "explain node n --from nodes -o json", "simulate workload"],
)
def test_an_answer_that_cannot_be_written_is_an_error(
    place: Path, command: str, unbuffered: str
) -> None:
    """On a full disk the error is one line; a reader that has enough, such as head, is none."""
    reading, writing = os.pipe()
    os.close(reading)
    with Path("/dev/full").open("wb") as full, os.fdopen(writing, "wb") as closed:
        for output, expected in (
            (full, "error: [Errno 28] No space left on device\n"),
            (closed, ""),
        ):
            ended = subprocess.run(
                [sys.executable, "-m", "stowage", *command.split()],
                cwd=place,
                env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
                stdout=output,
                stderr=subprocess.PIPE,
                check=False,
                text=True,
            )
            assert (ended.returncode, ended.stderr) == (1, expected)


def test_a_user_without_a_home_folder_can_run_commands() -> None:
    code = (
        "import os, pwd, sys; os.environ.pop('HOME', None); pwd.getpwuid = {}.__getitem__; "
        "os.environ['KUBECONFIG'] = '/nowhere/kubeconfig'; "
        "sys.argv = ['stowage', 'explain', 'node', 'n']; "
        "from stowage.cli.program import main; main()"
    )
    answer = _python(code, status=1)
    assert "Traceback" not in answer.stderr
    assert "kubeconfig" in answer.stderr


def test_run_imports_no_other_command() -> None:
    code = (
        "import sys; from stowage.cli.main import app; "
        "app(['run', '--help'], standalone_mode=False); "
        "print([name for name in sys.modules if name.startswith('stowage.cli.')])"
    )
    answer = _python(code)
    loaded = answer.stdout.splitlines()[-1]
    assert "'stowage.cli.run'" in loaded
    for other in ("bench", "cluster", "demo", "dump", "config"):
        assert f"'stowage.cli.{other}'" not in loaded


@pytest.mark.parametrize(
    ("mistyped", "meant"), [("dmup", "dump"), ("clutser", "cluster"), ("bnch", "bench")]
)
def test_the_error_for_a_mistyped_command_suggests_the_right_one(mistyped: str, meant: str) -> None:
    result = CliRunner().invoke(app, [mistyped])
    assert result.exit_code == 2
    assert f"Did you mean '{meant}'?" in result.stderr
