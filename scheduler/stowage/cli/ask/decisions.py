"""``stowage decisions``: shows the last decisions of a scheduler."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated

import msgspec
import typer
import yaml
from rich.console import Console
from rich.markup import escape

from stowage.api.decisions import (
    MAX_DECISIONS_OF_A_PAGE,
    Decision,
    DecisionPage,
    DecisionQuery,
)
from stowage.api.values.printable import printable_json
from stowage.cli.ask.decision_source import DecisionReader, DecisionSource, UnreadableDecisions
from stowage.cli.ask.decision_tables import HEADINGS, decision_tables, table_line
from stowage.cli.ask.flags import Output, OutputFormat
from stowage.cli.ask.object_names import node_name, pod_text
from stowage.cli.ask.output import write_answer
from stowage.cli.flag_groups import FlagGroup, Panel, takes_flag_groups
from stowage.cli.imports import fast_imports
from stowage.cli.lazy_commands import single_command_app
from stowage.cli.terminal import terminal

POLL_S = 1.0
_FILTERS = Panel("The filters")


class Result(StrEnum):
    """The results of attempts."""

    SCHEDULED = "scheduled"
    UNSCHEDULABLE = "unschedulable"
    ERROR = "error"


class FilterFlags(FlagGroup, frozen=True):
    """The flags that say which decisions are wanted."""

    namespace: Annotated[
        str,
        _FILTERS.option("--namespace", "-n", help="Namespace of the pods."),
    ] = ""
    pod: Annotated[
        str,
        _FILTERS.option(metavar="[NAMESPACE/]NAME", help="The pod."),
    ] = ""
    node: Annotated[
        str,
        _FILTERS.option(metavar="NAME", help="The chosen or nominated node."),
    ] = ""
    result: Annotated[Result | None, _FILTERS.option(help="The result of the attempt.")] = None
    limit: Annotated[
        int,
        _FILTERS.option(
            min=1,
            max=MAX_DECISIONS_OF_A_PAGE,
            help="The number of decisions; with --follow, of those at the start.",
        ),
    ] = 20

    def query(self) -> DecisionQuery:
        """The query for these decisions."""
        result = "" if self.result is None else self.result.value
        pod = pod_text(self.pod) if self.pod else ""
        node = node_name(self.node) if self.node else ""
        return DecisionQuery(self.namespace, pod, node, result, self.limit)


@takes_flag_groups
def decisions_command(
    *,
    filters: FilterFlags,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with new decisions until Ctrl-C.")
    ] = False,
    output: Output = OutputFormat.TABLE,
    recorded: DecisionSource,
) -> None:
    """Show the last decisions of a scheduler: which pod, which node, by which score, or why not.

    The decisions come from a running scheduler (--server), or from the files of its
    --decision-log.
    """
    # Imported late: --help does not need numpy and the plugins.
    with fast_imports():
        from stowage.cli.ask.source import failures_reported  # noqa: PLC0415

    console = terminal(stderr=True)
    query = filters.query()
    with failures_reported(console):
        reader = recorded.reader()
        if not follow:
            write_answer(DecisionPage(tuple(reader.latest(query))), output, decision_tables)
            return
        try:
            _write_forever(console, reader, query, output)
        except KeyboardInterrupt:
            raise typer.Exit(130) from None


def _write_forever(
    console: Console, reader: DecisionReader, query: DecisionQuery, output: OutputFormat
) -> None:
    is_table = output in (OutputFormat.TABLE, OutputFormat.WIDE)
    wide = output is OutputFormat.WIDE
    if is_table:
        sys.stdout.write(f"{table_line(HEADINGS, wide)}\n")
    for decision in _followed(console, reader, query):
        sys.stdout.write(_as_text(decision, output))
        sys.stdout.flush()


def _followed(console: Console, reader: DecisionReader, query: DecisionQuery) -> Iterator[Decision]:
    """The last decisions, then new ones; an outage of the scheduler is noted once."""
    yield from reader.latest(query)
    query = msgspec.structs.replace(query, limit=MAX_DECISIONS_OF_A_PAGE)
    is_noted = False
    while True:
        time.sleep(POLL_S)
        try:
            yield from reader.following(query)
            is_noted = False
        except UnreadableDecisions as error:
            if not is_noted:
                console.print(f"[yellow]note:[/yellow] {escape(str(error))}; trying again")
            is_noted = True


def _as_text(decision: Decision, output: OutputFormat) -> str:
    if output is OutputFormat.JSON:
        return f"{printable_json(msgspec.json.encode(decision).decode())}\n"
    if output is OutputFormat.YAML:
        document: str = yaml.safe_dump(msgspec.to_builtins(decision), sort_keys=False)
        return f"---\n{document}"
    return f"{table_line(decision, output is OutputFormat.WIDE)}\n"


app = single_command_app(decisions_command)
