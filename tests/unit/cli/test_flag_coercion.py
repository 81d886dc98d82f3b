"""Values of flags read directly are those that Typer reads, and so are its errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.exceptions import TyperException
from typer.main import get_command

from stowage.cli import run
from stowage.cli.flag_coercion import read_flags_directly

VALUES = [
    *("", "a", "1", "-1", "+7", "007", "70000", "99999999999999999999", "1_0", "\u0661", " 1 "),
    *("1.5", "1e3", "nan", "inf", ".5", "5.", "5s", "-5s", "1m30s", "500Mi", "0", "true", "T"),
    *("json", "JSON", "text", "VersionTLS12", "a,b", "my-metric", "/", "/missing", "/etc/passwd"),
    *(".", "-", "~", "\x00", "NodeAffinity=true"),
]


def _read(param: Any, value: Any) -> object:
    """The value that a parameter reads, with its types, or the text of its error."""
    try:
        found = param.get_runtime_param().coerce(value, param=param, ctx=None)
    except TyperException as refusal:
        return refusal.message
    except ValueError as error:
        return f"{type(error).__name__}: {error}"
    items = found if isinstance(found, list) else [found]
    return repr(found), [type(each) for each in items]


@pytest.mark.parametrize("value", VALUES)
def test_every_flag_reads_a_value_as_typer_does(value: str) -> None:
    typers, ours = get_command(run.app), get_command(run.app)
    read_flags_directly(ours.params)
    for theirs, own in zip(typers.params, ours.params, strict=True):
        written = [value, "a"] if own.multiple else value
        assert _read(own, written) == _read(theirs, written), own.name


def test_every_default_is_read_as_typer_does() -> None:
    typers, ours = get_command(run.app), get_command(run.app)
    read_flags_directly(ours.params)
    for theirs, own in zip(typers.params, ours.params, strict=True):
        assert _read(own, own.default) == _read(theirs, theirs.default), own.name


def test_a_file_is_read_as_its_path(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.touch()
    command = get_command(run.app)
    read_flags_directly(command.params)
    (flag,) = (each for each in command.params if each.name == "kubeconfig")
    assert _read(flag, str(file)) == (repr(file), [type(file)])
