"""Commands that are imported when somebody asks for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, ClassVar, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from stowage.cli.imports import garbage_collection_paused


class CommandSource(NamedTuple):
    """Where a command comes from.

    Attributes:
        module: Its full name; the command, or the group of commands, is its ``app``.
        panel: Of the help that lists it.
    """

    module: str
    panel: str


ENTRY_POINT_GROUP = "stowage.commands"
"""Entry points of installed distributions: command name -> ``module:app``."""


def installed_commands(panel: str) -> dict[str, CommandSource]:
    """The commands that other installed distributions add, by name; reads metadata only."""
    points = entry_points(group=ENTRY_POINT_GROUP)
    return {point.name: CommandSource(point.module, panel) for point in points}


class LazyGroup(TyperGroup):
    """A group that imports the module of a command with its first use: ``run`` needs no other's.

    Attributes:
        sources: By name, in the order in which they are listed.
    """

    sources: ClassVar[Mapping[str, CommandSource]] = {}

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        # Typer reads the names alone, to list commands and to guess what was meant by a typo.
        self.commands: Any = dict.fromkeys(self.sources)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - Typer's signature
        """The command of that name, or None."""
        if cmd_name in self.sources and self.commands[cmd_name] is None:
            self.commands[cmd_name] = _loaded(cmd_name, self.sources[cmd_name])
        return self.commands.get(cmd_name)


def single_command_app(
    function: Callable[..., None], cls: type[TyperCommand] = TyperCommand
) -> typer.Typer:
    """The ``app`` of a module that has one command."""
    app = typer.Typer(add_completion=False, rich_markup_mode="rich")
    app.command(cls=cls)(function)
    return app


def _loaded(name: str, source: CommandSource) -> Any:
    with garbage_collection_paused():
        app = import_module(source.module).app
    command: Any = get_command(app)
    command.name = name
    command.rich_help_panel = source.panel
    return command
