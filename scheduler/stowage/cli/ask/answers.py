"""Answers the questions of the commands; imports what deciding needs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from rich.console import Console
from rich.markup import escape

from stowage.analysis.capacity import capacity
from stowage.analysis.changed_weights import with_weights
from stowage.analysis.cluster_objects import ClusterObjects
from stowage.analysis.compact import compact
from stowage.analysis.explain_group import explain_group
from stowage.analysis.explain_node import explain_node
from stowage.analysis.explain_pod import NotInCluster, explain_pod
from stowage.analysis.gang_capacity import gang_capacity, gang_of
from stowage.analysis.recorded_decision import explain_recorded
from stowage.analysis.virtual_cluster import DAEMON_SET
from stowage.analysis.what_if import Question, what_if
from stowage.analysis.workload_pods import (
    InvalidManifest,
    objects_of_manifests,
    unread_kinds,
)
from stowage.api.decisions import DecisionQuery
from stowage.api.objects.meta import controller_of
from stowage.api.objects.pod import Pod
from stowage.api.objects.pod_groups import CoschedulingPodGroup, PodGroup
from stowage.cli.ask.capacity_tables import (
    capacity_tables,
    compact_tables,
    gang_capacity_tables,
)
from stowage.cli.ask.decision_source import DecisionSource
from stowage.cli.ask.explain_tables import node_tables, pod_tables
from stowage.cli.ask.flags import ClusterFlags, OutputFormat
from stowage.cli.ask.group_tables import group_tables
from stowage.cli.ask.output import write_answer
from stowage.cli.ask.source import (
    ClusterContents,
    failures_reported,
    read_contents,
    read_items,
)
from stowage.cli.ask.weights import parse_weights
from stowage.cli.ask.what_if_tables import what_if_tables
from stowage.cli.terminal import terminal

#: Kinds of which a count makes copies.
_COPIED = frozenset({Pod.__name__, PodGroup.__name__, CoschedulingPodGroup.__name__})


class Changes(msgspec.Struct, frozen=True):
    """The changes of a what-if; `weights` are ``PLUGIN=WEIGHT``, the others as in `Question`."""

    manifests: Sequence[Path] = ()
    add_nodes: Sequence[tuple[int, str]] = ()
    cordon: Sequence[str] = ()
    drain: Sequence[str] = ()
    remove_nodes: Sequence[str] = ()
    weights: Sequence[str] = ()


def answer_about_pod(flags: ClusterFlags, key: str, output: OutputFormat) -> None:
    """Explain the pod ``namespace/name``."""
    console = _errors()
    with failures_reported(console):
        contents = read_contents(flags, console)
        answer = explain_pod(contents.load(console), key)
        if contents.as_of:
            answer = msgspec.structs.replace(answer, basis=f"evaluated against {contents.as_of}")
        write_answer(answer, output, pod_tables)


def answer_about_group(flags: ClusterFlags, key: str, output: OutputFormat) -> None:
    """Explain the pod group ``namespace/name``."""
    console = _errors()
    with failures_reported(console):
        contents = read_contents(flags, console)
        answer = explain_group(contents.load(console), key)
        if contents.as_of:
            answer = msgspec.structs.replace(answer, basis=f"evaluated against {contents.as_of}")
        write_answer(answer, output, group_tables)


def answer_about_recorded(recorded: DecisionSource, key: str, output: OutputFormat) -> None:
    """Explain the pod ``namespace/name`` by the last recorded decision about it."""
    with failures_reported(_errors()):
        found = recorded.reader().latest(DecisionQuery(pod=key, limit=1))
        if not found:
            raise NotInCluster(f"no decision about pod {key} is recorded")
        write_answer(explain_recorded(found[0]), output, pod_tables)


def answer_about_node(flags: ClusterFlags, name: str, output: OutputFormat) -> None:
    """Explain a node."""
    console = _errors()
    with failures_reported(console):
        loaded = read_contents(flags, console).load(console)
        write_answer(explain_node(loaded, name), output, node_tables)


def answer_what_if(flags: ClusterFlags, changes: Changes, output: OutputFormat) -> None:
    """Show what the changes would do."""
    console = _errors()
    with failures_reported(console):
        contents = read_contents(flags, console)
        items = [item for file in changes.manifests for item in read_items(file)]
        created = objects_of_manifests(items, contents.objects, changes.remove_nodes)
        if changes.weights:
            weights = parse_weights(changes.weights)
            weighted = [with_weights(each, weights) for each in contents.frameworks]
            contents = contents.with_frameworks(weighted)
        question = Question(
            changes.add_nodes, changes.cordon, changes.drain, changes.remove_nodes, created
        )
        names = {pod.spec.scheduler_name for pod in created.pods()}
        answer = what_if(contents.load(console, names), question)
        notes = (*answer.notes, *unread_kinds(items))
        answer = msgspec.structs.replace(answer, notes=notes)
        write_answer(answer, output, what_if_tables)


def answer_capacity(
    flags: ClusterFlags, filenames: Sequence[Path], limit: int, group_by: str, output: OutputFormat
) -> None:
    """Count how many pods like the one of a manifest fit, or how many gangs."""
    console = _errors()
    with failures_reported(console):
        contents = read_contents(flags, console)
        made = _objects_with_pods(filenames, contents)
        pod = made.pods()[0]
        _refuse_daemon_set(pod)
        loaded = contents.load(console, {each.spec.scheduler_name for each in made.pods()})
        gang = gang_of(made, contents.objects) if contents.has_groups else None
        if gang is not None:
            write_answer(gang_capacity(loaded, gang, limit), output, gang_capacity_tables)
            return
        num_kinds = len({_origin(each) for each in made.pods()})
        if num_kinds > 1:
            text = (
                f"counting pods like {pod.metadata.name}, the first of {num_kinds} in the manifests"
            )
            console.print(f"[yellow]note:[/yellow] {escape(text)}", soft_wrap=True)
        answer = capacity(loaded, pod, limit=limit, group_by=group_by)
        write_answer(answer, output, capacity_tables)


def answer_compact(flags: ClusterFlags, output: OutputFormat) -> None:
    """Name the nodes that could be removed."""
    console = _errors()
    with failures_reported(console):
        contents = read_contents(flags, console)
        if contents.compacted is None:
            contents.compacted = compact(contents.load(console))
        write_answer(contents.compacted, output, compact_tables)


def _origin(pod: Pod) -> tuple[str, str]:
    """Kind and name of the pod's controller, or else its own."""
    owner = controller_of(pod.metadata)
    return ("Pod", pod.metadata.name) if owner is None else (owner.kind, owner.name)


def _refuse_daemon_set(pod: Pod) -> None:
    """Refuse to count the pods of a DaemonSet: each of them is for one node."""
    kind, name = _origin(pod)
    if kind == DAEMON_SET:
        raise InvalidManifest(
            f"{kind} {name}: expected a pod, or a workload whose pods may go to any node; "
            "stowage what-if shows on which nodes a DaemonSet fits"
        )


def _errors() -> Console:
    return terminal(stderr=True)


def _objects_with_pods(filenames: Sequence[Path], contents: ClusterContents) -> ClusterObjects:
    """The objects of the manifests, at least one pod; all but pods are added to the cluster.

    Pod groups are not added either: each copy of a gang has a group of its own.
    """
    items = [item for file in filenames for item in read_items(file)]
    made = objects_of_manifests(items, contents.objects)
    if not made.pods():
        names = ", ".join(map(str, filenames))
        raise InvalidManifest(f"{names}: expected a pod, or a workload with pods")
    for name, kind in made.by_kind.items():
        for obj in kind.values() if name not in _COPIED else ():
            contents.objects.add(obj)
    return made
