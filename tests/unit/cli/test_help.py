"""`--help` is readable in a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from stowage.cli.main import app


def commands(path: tuple[str, ...], command: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name in command.list_commands(None) if hasattr(command, "list_commands") else ():
        yield from commands((*path, name), command.get_command(None, name))


ALL = dict(commands((), get_command(app)))


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_the_help_of_every_command_names_every_flag_within_80_columns(
    path: tuple[str, ...],
) -> None:
    result = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "80"})
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert [line for line in lines if len(line) > 80] == []
    assert "[/" not in result.stdout, "markup is not rendered"
    words = {word.strip(",") for line in lines for word in line.split()}
    for parameter in ALL[path].params:
        if parameter.param_type_name == "option":
            assert words.issuperset([*parameter.opts, *parameter.secondary_opts]), parameter.opts


def test_the_help_lists_the_commands_with_examples() -> None:
    result = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"})
    assert "  run     Schedule the pods of a cluster until SIGTERM or Ctrl-C.\n" in result.stdout
    assert "    stowage config check config.yaml\n" in result.stdout


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("config check", "FILE..."),
        ("config show", "[FILE]"),
        ("simulate", "FILE..."),
        ("explain pod", "[NAMESPACE/]NAME"),
        ("replay", "RECORDING"),
    ],
)
def test_the_usage_names_the_arguments(command: str, arguments: str) -> None:
    result = CliRunner().invoke(app, [*command.split(), "--help"])
    assert result.stdout.partition("\n")[0].endswith(f"{command} [OPTIONS] {arguments}")


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_the_version_is_printed(flag: str) -> None:
    result = CliRunner().invoke(app, [flag])
    assert result.exit_code == 0
    assert result.stdout.startswith("stowage ")


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        (["rnu"], "Did you mean 'run'?"),
        (["run", "--kubconfig=x"], "--kubeconfig"),
        (["config", "shwo"], "Did you mean 'show'?"),
    ],
)
def test_a_misspelt_command_or_flag_gets_a_suggestion(arguments: list[str], want: str) -> None:
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "80"})
    assert result.exit_code == 2
    assert want in result.stderr
