"""Traits: promises of a plugin about its answers, by which the framework keeps and shares them.

Every promise is optional. A promise that is not made costs time; one that is made and not kept
gives wrong decisions. `PluginTraits.reports_gated_pods` is no promise but a request.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import Enum


class Reads(Enum):
    """The objects that a Filter or Score answer about one node depends on, besides the pod.

    The framework keeps answers per equivalence class of pods and asks again only about nodes for
    which this changed. With any value but `CLUSTER` the plugin also promises:

    - Its answer is defined for nodes that are not feasible, and for rows without a node.
    - Of the pod it reads its equivalence class only, in PreFilter and PreScore too.
    - Its `normalize_score` gives equal raw scores equal results.
    """

    #: The node object: labels, annotations, taints, spec, images, allocatable, and the statuses of
    #: its conditions (not their reasons, messages and times).
    NODE = "node"
    #: The node object and what its own pods take of it: requests, ports, volumes.
    USAGE = "usage"
    #: The objects of all nodes, e.g. how many of them have an image.
    NODES = "nodes"
    #: Anything else. Nothing is kept: the plugin is asked in every cycle about all nodes.
    CLUSTER = "cluster"


@dataclass(frozen=True, kw_only=True)
class PluginTraits:
    """The promises of one plugin, in its attribute ``traits``; without any, nothing is kept.

    Raises:
        TypeError: A field is unknown or has a value of another type.

    Examples:
        >>> traits = PluginTraits(filter_reads=Reads.NODE, rejects_per_class=True)
        >>> traits.score_reads
        <Reads.CLUSTER: 'cluster'>
        >>> PluginTraits(filter_reads="node")
        Traceback (most recent call last):
        ...
        TypeError: PluginTraits.filter_reads is 'node', expected a Reads
    """

    filter_reads: Reads = Reads.CLUSTER
    """The objects that Filter reads. Saves asking the plugin again about unchanged nodes."""

    score_reads: Reads = Reads.CLUSTER
    """The objects that the raw Score reads. Saves scoring unchanged nodes again."""

    reads_only_node_demand: bool = False
    """Of the pod, the plugin reads only what it requires of a single node: not its namespace,
    labels, owner, affinity to other pods or spread constraints (PreFilter and PreScore included; a
    PostFilter plugin also reads its priority and preemption policy, which are equal for such pods).
    Where all plugins whose answers are kept promise this, classes with the same requirements share
    one set of answers; where all Filter and PostFilter plugins do, they share a rejection."""

    reads_only_amounts: bool = False
    """With `Reads.USAGE`: of a node, the plugin reads only `allocatable`, `requested`,
    `nonzero_requested` and `num_pods`. Where all plugins with `Reads.USAGE` promise this, their
    answer about a node is looked up by its amounts if any node had the same before."""

    reads_placed_pods: bool = True
    """Whether Filter reads anything of pods that are placed; a plugin with `Reads.NODE` does not.
    False saves asking the plugin again for each set of victims that preemption tries."""

    filters_what_ifs: bool = False
    """Filter also answers about nodes as they would be with some pods added or removed, by
    ``nodes.changes`` (see `FilterPlugin`). Preemption and nominated pods then ask it about many
    nodes in one call, instead of about each node in a copy of the cluster."""

    never_needs_pods: bool = False
    """A node that Filter rejects is rejected, too, when more pods are placed in the cluster. A
    plugin with `Reads.NODE` does not read them. Where all plugins that do not skip the members of a
    pod group promise this, and `rejects_per_class`, the group is not tried in topology domains
    whose nodes take none."""

    rejects_per_class: bool = False
    """For a pod without volumes, resource claims and nomination, the answers of PreFilter, Filter
    and PostFilter depend on the cluster and the pod's equivalence class only, and change nothing
    but the cycle's state. Where all plugins of these points promise this, a pod that fits nowhere
    gets the rejection of the last pod of its class as long as the cluster has not changed."""

    skips_per_class: bool = False
    """If PreFilter or PreScore skips a pod without volumes, resource claims and nomination, it
    skips the next pod of its equivalence class too, after this one was placed and nothing else
    changed. Saves running PreFilter and PreScore for each of the equal members of a pod group,
    where the answers of all plugins that do not skip are kept."""

    pre_enqueue_per_class: bool = False
    """For a pod without resource claims and pod group, the answer of PreEnqueue depends on the
    pod's equivalence class only. Of many pods of a class that an event moves at once, the plugin is
    asked about one."""

    reports_gated_pods: bool = False
    """No promise but a request: write the message of a rejection by the plugin's PreEnqueue to the
    pod's PodScheduled condition, with the reason ``SchedulingGated``. The condition of a pod with
    ``spec.schedulingGates`` is the API server's, and stays."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value, expected = getattr(self, field.name), type(field.default)
            if not isinstance(value, expected):
                text = f"PluginTraits.{field.name} is {value!r}, expected a {expected.__name__}"
                raise TypeError(text)
