"""A command takes flags that belong together as one parameter."""

from __future__ import annotations

import subprocess
import sys
from typing import Annotated

from typer.testing import CliRunner

from stowage.cli.flag_groups import FlagGroup, Panel, Without, takes_flag_groups
from stowage.cli.lazy_commands import single_command_app

_SHIP = Panel("The ship")


class Ship(FlagGroup, frozen=True):
    """Flags about a ship."""

    name: Annotated[str, _SHIP.option(help="Its name.")] = "Argo"
    containers: Annotated[list[int] | None, _SHIP.option("--container")] = None
    patience: Annotated[float | None, _SHIP.duration()] = None


@takes_flag_groups
def _load(port: str = "Kiel", *, ship: Ship, cranes: int = 2) -> None:
    print(port, ship, cranes)  # noqa: T201 - the output that is compared


@takes_flag_groups
def _leave(*, ship: Annotated[Ship, Without("containers", "patience")]) -> None:
    print(ship)  # noqa: T201 - as above


def _output(command: object, *flags: str) -> str:
    assert callable(command)
    return CliRunner().invoke(single_command_app(command), flags, env={"COLUMNS": "80"}).output


def test_a_command_gets_the_values_of_its_flags_as_groups() -> None:
    shown = _output(_load, "--container=1", "--patience=2m", "--container", "2", "--cranes=3")
    assert shown == "Kiel Ship(name='Argo', containers=[1, 2], patience=120.0) 3\n"


def test_the_help_lists_the_flags_of_a_group_in_its_panel_and_in_their_order() -> None:
    panel = _output(_load, "--help").partition("The ship:")[2]
    assert [line.split()[0] for line in panel.splitlines() if "--" in line] == [
        "--name",
        "--container",
        "--patience",
    ]


def test_a_command_lacks_the_flags_that_its_parameter_leaves_out() -> None:
    assert _output(_leave, "--name=Vasa") == "Ship(name='Vasa', containers=None, patience=None)\n"
    assert "No such option: --patience" in _output(_leave, "--patience=1s")


def test_a_group_names_the_flags_that_were_given() -> None:
    assert Ship().given() == []
    assert Ship(name="Argo", containers=[]).given() == []
    assert Ship("Vasa", [1], 3.0).given() == ["--name", "--container", "--patience"]


def test_the_help_of_run_needs_neither_numpy_nor_the_plugins() -> None:
    script = (
        "import sys; from typer.main import get_command; from stowage.cli.main import app; "
        "get_command(app).get_command(None, 'run'); "
        "print({'numpy', 'stowage.plugins', 'kopf'} & sys.modules.keys())"
    )
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert found.stdout == "set()\n", found.stderr
