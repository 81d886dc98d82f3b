"""The ``stowage`` command and its list of subcommands."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from stowage.cli.lazy_commands import CommandSource, LazyGroup
from stowage.cli.standard_streams import open_standard_streams
from stowage.cli.version import print_version

_SCHEDULE = "Schedule"
_ASK = "Ask"
_TRY = "Try and measure"

_EXAMPLES = {
    "demo": ("Try the scheduler without a cluster", "stowage demo"),
    "run": ("Schedule the pods of a cluster", "stowage run --kubeconfig ~/.kube/config"),
    "config": ("Check a configuration file", "stowage config check config.yaml"),
    "explain": ("Ask why a pod is pending", "stowage explain pod NAMESPACE/NAME"),
    "what-if": ("See where pods would go", "stowage what-if -f deployment.yaml --drain NODE"),
    "capacity": ("Count how many more pods fit", "stowage capacity -f pod.yaml"),
    "record": ("Record a cluster beside its scheduler", "stowage record DIR"),
    "replay": ("Repeat what a scheduler did", "stowage replay DIR --until NAMESPACE/POD"),
    "decisions": (
        "Watch a running scheduler decide",
        "stowage decisions --follow --server https://localhost:10259",
    ),
    "simulate": ("Compare policies in virtual time", "stowage simulate WORKLOAD --config FILE"),
    "tune": ("Find better weights", "stowage tune WORKLOAD --objective packing"),
    "console": ("Look at a cluster in a browser", "stowage console"),
    "cluster": ("Run a simulated cluster", "stowage cluster --write-kubeconfig /tmp/kubeconfig"),
    "dump": (
        "Copy a real cluster into a simulated one",
        "stowage dump all.json && stowage cluster --from all.json",
    ),
}
"""Command -> what an example does, and its command line; shown if the command is installed."""

_DISTRIBUTIONS = {
    "demo": "stowage-simcluster",
    "cluster": "stowage-simcluster",
    "dump": "stowage-simcluster",
    "bench": "stowage-benchmarks",
}


class _Commands(LazyGroup):
    distributions = _DISTRIBUTIONS
    installed_panel = _TRY
    sources = {  # noqa: RUF012 - declared as a ClassVar where it is read
        "run": CommandSource("stowage.cli.run", _SCHEDULE),
        "config": CommandSource("stowage.cli.config", _SCHEDULE),
        "explain": CommandSource("stowage.cli.ask.explain", _ASK),
        "what-if": CommandSource("stowage.cli.ask.what_if", _ASK),
        "decisions": CommandSource("stowage.cli.ask.decisions", _ASK),
        "capacity": CommandSource("stowage.cli.ask.capacity", _ASK),
        "compact": CommandSource("stowage.cli.ask.compact", _ASK),
        "record": CommandSource("stowage.cli.record", _ASK),
        "replay": CommandSource("stowage.cli.replay", _ASK),
        "shell": CommandSource("stowage.cli.ask.shell", _ASK),
        "simulate": CommandSource("stowage.cli.simulate", _TRY),
        "tune": CommandSource("stowage.cli.tune", _TRY),
        "console": CommandSource("stowage.cli.console", _ASK),
    }

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write an example of each command."""
        names = self.list_commands(ctx)
        examples = [
            f"  {purpose}:\n    {command_line}"
            for name, (purpose, command_line) in _EXAMPLES.items()
            if name in names
        ]
        self.epilog = "\n".join(["Examples:", *examples])
        super().format_epilog(ctx, formatter)


app = typer.Typer(
    name="stowage",
    cls=_Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def stowage(
    version: Annotated[  # noqa: ARG001 - its callback prints and exits
        bool,
        typer.Option(
            "--version",
            "-V",
            is_eager=True,
            callback=print_version,
            help="Print the version and exit.",
        ),
    ] = False,
) -> None:
    """A Kubernetes scheduler in Python that makes the same decisions as kube-scheduler."""
    open_standard_streams()
