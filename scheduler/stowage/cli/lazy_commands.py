"""Commands that are imported when they are called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, ClassVar, NamedTuple

import typer
from typer.core import TyperCommand
from typer.main import get_command

from stowage.cli.imports import garbage_collection_paused
from stowage.cli.plain_help import PlainCommand, PlainGroup


class CommandSource(NamedTuple):
    """The source of a command.

    Attributes:
        module: Full name of the module; its ``app`` is the command or the group of commands.
        panel: Panel of the help that lists the command.
    """

    module: str
    panel: str


FILE = "FILE"
"""Name of the command of a `FileGroup` that takes files."""

ENTRY_POINT_GROUP = "stowage.commands"
"""Entry points of installed distributions: command name -> ``module:app``."""


def installed_commands(panel: str) -> dict[str, CommandSource]:
    """The commands of other installed distributions, by name; reads their metadata only."""
    # Imported late: it reads the metadata of every distribution.
    from importlib.metadata import entry_points  # noqa: PLC0415

    points = entry_points(group=ENTRY_POINT_GROUP)
    return {point.name: CommandSource(point.module, panel) for point in points}


class LazyGroup(PlainGroup):
    """A group that imports the module of a command when the command is first used.

    Attributes:
        sources: Name -> source, in the order of the help.
        installed_panel: Panel of the commands of other installed distributions, which are looked up
            when the command is none of `sources`; None if the group has no such commands.
        distributions: Name of a command that may be missing -> the distribution that has it.
    """

    sources: ClassVar[Mapping[str, CommandSource]] = {}
    installed_panel: ClassVar[str | None] = None
    distributions: ClassVar[Mapping[str, str]] = {}

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        # Typer uses only the names, to list commands and to suggest a command after a typo.
        self.commands: Any = dict.fromkeys(self.sources)
        self._installed: Mapping[str, CommandSource] | None = None

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - Typer's signature
        """The command of that name, or None."""
        source = self.sources.get(cmd_name) or self._find_installed().get(cmd_name)
        if source is not None and self.commands[cmd_name] is None:
            self.commands[cmd_name] = _loaded(cmd_name, source)
        return self.commands.get(cmd_name)

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all commands, also of those of other distributions."""
        self._find_installed()
        return super().list_commands(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the arguments name; a missing distribution is named in the error."""
        name = args[0]
        if name in self.distributions and name not in self._find_installed():
            ctx.fail(f"'{name}' needs the package {self.distributions[name]}: it is not installed.")
        return super().resolve_command(ctx, args)

    def _find_installed(self) -> Mapping[str, CommandSource]:
        """The commands of other installed distributions, looked up once."""
        if self._installed is None:
            panel = self.installed_panel
            self._installed = {} if panel is None else installed_commands(panel)
            for name in self._installed:
                self.commands.setdefault(name)
        return self._installed


class FileGroup(LazyGroup):
    """A group whose first argument is the name of a command, or a file.

    The command `FILE` of `sources` takes files.
    """

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name; any other name is the first file."""
        return super().get_command(ctx, cmd_name if cmd_name in self.sources else FILE)

    def make_context(
        self, info_name: Any, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        """Let the command of files take the arguments, unless the first one names another."""
        if args and args[0] != FILE and args[0] in self.sources:
            return super().make_context(info_name, args, parent, **extra)
        return super().get_command(None, FILE).make_context(info_name, args, parent, **extra)


def single_command_app(
    function: Callable[..., None], cls: type[TyperCommand] = PlainCommand
) -> typer.Typer:
    """The ``app`` of a module with one command."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(cls=cls)(function)
    return app


def _loaded(name: str, source: CommandSource) -> Any:
    with garbage_collection_paused():
        app = import_module(source.module).app
    command: Any = get_command(app)
    command.name = name
    command.rich_help_panel = source.panel
    return command
