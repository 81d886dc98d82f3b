"""The ``stowage`` command and its list of subcommands."""

from __future__ import annotations

import typer

from stowage.cli.lazy_commands import CommandSource, LazyGroup, installed_commands
from stowage.cli.standard_streams import open_standard_streams

_SCHEDULE = "Schedule"
_TRY = "Try and measure"

_EXAMPLES = {
    "demo": ("Try the scheduler without a cluster", "stowage demo"),
    "run": ("Schedule the pods of a cluster", "stowage run --kubeconfig ~/.kube/config"),
    "config": ("Check a configuration file", "stowage config check config.yaml"),
    "cluster": ("Run a simulated cluster", "stowage cluster --write-kubeconfig /tmp/kubeconfig"),
    "dump": (
        "Copy a real cluster into a simulated one",
        "stowage dump all.json && stowage cluster --from all.json",
    ),
}
"""Command -> what an example does, and its command line; shown if the command is installed."""


class _Commands(LazyGroup):
    sources = {  # noqa: RUF012 - declared as a ClassVar where it is read
        "run": CommandSource("stowage.cli.run", _SCHEDULE),
        "config": CommandSource("stowage.cli.config", _SCHEDULE),
        **installed_commands(_TRY),
    }


def _epilog() -> str:
    examples = [
        f"{purpose}:\n  [cyan]{command_line}[/cyan]"
        for name, (purpose, command_line) in _EXAMPLES.items()
        if name in _Commands.sources
    ]
    return "\n\n".join(["[b]Examples[/b]", *examples])


app = typer.Typer(
    name="stowage",
    cls=_Commands,
    epilog=_epilog(),
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def stowage() -> None:
    """A Kubernetes scheduler in Python that makes the same decisions as kube-scheduler."""
    open_standard_streams()
