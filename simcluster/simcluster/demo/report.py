"""The demo's tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from simcluster.demo.outcome import Outcome, pending_reason
from simcluster.harness.placements import Placement
from stowage.api.objects.node import Node

ZONE = "topology.kubernetes.io/zone"
SIZE = "node.kubernetes.io/instance-type"


def print_report(console: Console, outcome: Outcome) -> None:
    """Print placements, pending pods with their reasons, and the pace of binding."""
    console.print(placement_table(outcome))
    console.print(pending_table(outcome))
    console.print(pace_table(outcome))


def placement_table(outcome: Outcome) -> Table:
    """One row per workload: its pods by zone and by node size."""
    nodes = {node.metadata.name: node for node in outcome.state.nodes}
    zones, sizes = _values(nodes, ZONE), _values(nodes, SIZE)
    table = _table(f"Placed on {len(nodes)} nodes")
    table.add_column("workload", no_wrap=True)
    for heading in ("pods", "bound", *zones, *sizes, "nodes"):
        table.add_column(heading, justify="right", no_wrap=True)
    for workload, placements in _by_workload(outcome.placements):
        on = [each.node_names[0] for each in placements if each.bound_at is not None]
        counts = [
            len(placements),
            len(on),
            *_counts([nodes[name] for name in on], ZONE, zones),
            *_counts([nodes[name] for name in on], SIZE, sizes),
            len(set(on)),
        ]
        table.add_row(escape(workload), *map(str, counts))
    return table


def pending_table(outcome: Outcome) -> Table:
    """One row per pod without a node, with the message of its PodScheduled condition."""
    table = _table("Pending, and why")
    table.add_column("pod", no_wrap=True)
    table.add_column("PodScheduled is False because", overflow="fold")
    for placement in outcome.placements:
        if placement.bound_at is None:
            name = placement.pod.metadata.namespaced_name
            table.add_row(name, escape(pending_reason(placement)))
    return table


def pace_table(outcome: Outcome) -> Table:
    """Binds per second, and the time of pods from creation to binding."""
    num_bound = sum(each.bound_at is not None for each in outcome.placements)
    pace = outcome.pace()
    table = _table("Pace, as a watch on the API server saw it")
    for heading in ("bound", "binds/s", "creation to binding p50", "p99"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_row(
        str(num_bound),
        "-" if pace.binds_per_s is None else f"{pace.binds_per_s:.0f}",
        _milliseconds(pace.p50_s),
        _milliseconds(pace.p99_s),
    )
    return table


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)


def _by_workload(placements: Sequence[Placement]) -> Iterator[tuple[str, list[Placement]]]:
    by_name: dict[str, list[Placement]] = {}
    for placement in placements:
        metadata = placement.pod.metadata
        name = metadata.labels.get("app", metadata.name)
        by_name.setdefault(name, []).append(placement)
    yield from sorted(by_name.items(), key=lambda item: (-len(item[1]), item[0]))


def _values(nodes: Mapping[str, Node], label: str) -> list[str]:
    return sorted({node.metadata.labels.get(label, "-") for node in nodes.values()})


def _counts(nodes: Sequence[Node], label: str, values: Sequence[str]) -> list[int]:
    counts = Counter(node.metadata.labels.get(label, "-") for node in nodes)
    return [counts[value] for value in values]


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1000:.0f} ms"
