"""What a person's changes would do, with the maps before and after.

The cluster is changed: the answer is computed in a child process.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Annotated

import msgspec

from stowage.analysis.changed_weights import with_weights
from stowage.analysis.virtual_cluster import Preempted
from stowage.analysis.what_if import (
    ClusterSummary,
    KeptPod,
    Placement,
    Question,
    StillPending,
    WhatIfAnswer,
    what_if,
)
from stowage.analysis.workload_pods import objects_of_manifests, unread_kinds
from stowage.console.answers.answer import Answer
from stowage.console.answers.cluster_map import ZONE, ClusterMap, cluster_map
from stowage.console.answers.manifests import ManifestError, check_manifests, manifest_items
from stowage.console.clusters.moment import Moment
from stowage.console.clusters.stand_ins import decided_by

MAX_DIFFERENCES = 2_000
MAX_ADDED_NODES = 5_000
MAX_WEIGHT = 2**31 - 1
MANIFESTS_FILE = "manifests.yaml"
"""The name under which a person saves the manifests, in the command line."""


class AddedNodes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Nodes to add, equal to the node `like`; at most `MAX_ADDED_NODES`."""

    count: Annotated[int, msgspec.Meta(ge=0, le=MAX_ADDED_NODES)]
    like: str


class Changes(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What a person changes; see `Question`."""

    manifests: str = ""
    cordon: tuple[str, ...] = ()
    drain: tuple[str, ...] = ()
    remove_nodes: tuple[str, ...] = ()
    add_nodes: AddedNodes | None = None
    weights: dict[str, Annotated[int, msgspec.Meta(ge=0, le=MAX_WEIGHT)]] = {}
    group: str = ZONE
    at: str = ""


class InvalidManifests(ValueError):  # noqa: N818 - it names the finding
    """The manifests have errors."""

    def __init__(self, errors: Sequence[ManifestError]) -> None:
        super().__init__("the manifests are invalid")
        self.errors = tuple(errors)


class Difference(Answer, frozen=True, omit_defaults=True):
    """One thing that is different afterwards, as values and as a sentence."""

    kind: str
    subject: str
    text: str
    before: str = msgspec.field(default="", name="from")
    after: str = msgspec.field(default="", name="to")


class GroupOutcome(Answer, frozen=True):
    """What becomes of a pod group."""

    group: str
    outcome: str
    text: str


class Maps(Answer, frozen=True):
    """The maps before and after."""

    before: ClusterMap
    after: ClusterMap


class WhatIfResult(Answer, frozen=True):
    """The answer of `what_if`, with differences, maps and the equal command line."""

    version: int
    before: ClusterSummary
    after: ClusterSummary
    placed: tuple[Placement, ...]
    pending: tuple[StillPending, ...]
    preempted: tuple[Preempted, ...]
    deleted: tuple[str, ...]
    kept: tuple[KeptPod, ...]
    added_nodes: tuple[str, ...]
    notes: tuple[str, ...]
    groups: list[GroupOutcome]
    differences: list[Difference]
    num_differences: int
    maps: Maps
    command_line: str


def what_if_answer(moment: Moment, changes: Changes, cluster_flags: str) -> WhatIfResult:
    """Try the changes on the cluster of a moment, which is changed.

    Args:
        moment: The cluster.
        changes: The changes.
        cluster_flags: The flags that name the cluster on a command line.

    Raises:
        InvalidManifests: The manifests have errors.
        InvalidConfiguration: A weight is of no score plugin.
        NotInCluster: A node does not exist.
    """
    objects = moment.loaded.objects
    check = check_manifests(changes.manifests, objects)
    if check.errors:
        raise InvalidManifests(check.errors)
    items = manifest_items(changes.manifests)
    created = objects_of_manifests(items, objects, changes.remove_nodes)
    names = {pod.spec.scheduler_name for pod in [*objects.pods(), *created.pods()]}
    frameworks = [with_weights(each, changes.weights) for each in moment.frameworks]
    loaded = decided_by(moment.loaded, frameworks, names)
    before = cluster_map(moment, changes.group)
    pending_before = set(objects.pods_by_node().pending())
    added = changes.add_nodes
    answer = what_if(
        loaded,
        Question(
            () if added is None or not added.count else ((added.count, added.like),),
            changes.cordon,
            changes.drain,
            changes.remove_nodes,
            created,
        ),
    )
    answer = msgspec.structs.replace(answer, notes=(*answer.notes, *unread_kinds(items)))
    after = cluster_map(msgspec.structs.replace(moment, loaded=loaded), changes.group)
    command = command_line(changes, cluster_flags)
    return _result(
        answer, list(_differences(answer, changes, pending_before)), Maps(before, after), command
    )


def _result(
    answer: WhatIfAnswer, differences: Sequence[Difference], maps: Maps, command: str
) -> WhatIfResult:
    return WhatIfResult(
        maps.before.version,
        answer.before,
        answer.after,
        answer.placed,
        answer.pending,
        answer.preempted,
        answer.deleted,
        answer.kept,
        answer.added_nodes,
        answer.notes,
        [GroupOutcome(each.group, each.outcome, each.text) for each in answer.groups],
        list(differences[:MAX_DIFFERENCES]),
        len(differences),
        maps,
        command,
    )


def command_line(changes: Changes, cluster_flags: str) -> str:
    """The command that asks the same question in a terminal.

    Examples:
        >>> command_line(Changes(drain=("n1", "n2"), weights={"ImageLocality": 5}), "--context dev")
        'stowage what-if --context dev --drain n1,n2 --weights ImageLocality=5'
    """
    words = ["stowage", "what-if", *shlex.split(cluster_flags)]
    if changes.manifests.strip():
        words += ["-f", MANIFESTS_FILE]
    if changes.at:
        words += ["--at", changes.at]
    for flag, names in _node_flags(changes).items():
        words += [flag, ",".join(names)] if names else []
    if changes.add_nodes is not None and changes.add_nodes.count:
        words += ["--add-nodes", str(changes.add_nodes.count), "--like", changes.add_nodes.like]
    if changes.weights:
        weights = ",".join(f"{plugin}={weight}" for plugin, weight in changes.weights.items())
        words += ["--weights", weights]
    return shlex.join(words)


def _node_flags(changes: Changes) -> Mapping[str, Sequence[str]]:
    return {
        "--cordon": changes.cordon,
        "--drain": changes.drain,
        "--remove-nodes": changes.remove_nodes,
    }


def _differences(
    answer: WhatIfAnswer, changes: Changes, pending_before: Collection[str]
) -> Iterator[Difference]:
    """Nodes first, then pods; not those that were pending and stay so."""
    for name in answer.added_nodes:
        yield Difference("nodeAdded", name, f"node {name} is added")
    for name in changes.remove_nodes:
        yield Difference("nodeRemoved", name, f"node {name} is removed")
    for name in dict.fromkeys([*changes.cordon, *changes.drain]):
        yield Difference("nodeCordoned", name, f"node {name} is cordoned")
    for placed in answer.placed:
        kind, way = ("moved", f": {placed.was}") if placed.was else ("placed", "")
        text = f"{placed.pod}{way} -> {placed.node}"
        yield Difference(kind, placed.pod, text, placed.was, placed.node)
    for victim in answer.preempted:
        text = f"{victim.pod} is preempted on {victim.node} for {victim.preemptor}"
        yield Difference("preempted", victim.pod, text, victim.node)
    for waiting in answer.pending:
        if waiting.pod in pending_before:
            continue
        why = f": {waiting.message}" if waiting.message else ""
        text = f"{waiting.pod} is pending{why}"
        yield Difference("pending", waiting.pod, text, waiting.was)
    for key in answer.deleted:
        yield Difference("deleted", key, f"{key} is deleted, and nothing makes it again")
    for kept in answer.kept:
        yield Difference("kept", kept.pod, f"{kept.pod} stays: {kept.why}")
