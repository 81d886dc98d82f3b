"""Answers as values: they are shown as tables and written as JSON."""

from __future__ import annotations

import msgspec

from stowage.analysis.devices.shortage import DeviceShortage, NodeDevice
from stowage.api.decisions import PluginScore

AS_IT_IS_NOW = "evaluated against the cluster as it is now"
IN_FILES = "the cluster in the files"


class _Answer(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Base of all answers; JSON has camelCase names and leaves out what is empty."""


class PluginStatus(_Answer, frozen=True):
    """The rejection or failure of a plugin.

    Attributes:
        plugin: The plugin.
        code: The status code as kube-scheduler prints it.
        reasons: The plugin's reasons.
    """

    plugin: str
    code: str
    reasons: tuple[str, ...] = ()


class NodeVerdict(_Answer, frozen=True):
    """What the plugins say about one node.

    Attributes:
        node: The node.
        rejected_by: The plugin that decides the rejection; None if the pod fits.
        also_rejected_by: The other plugins that reject the node.
        scores: The scores by plugin, for a feasible node.
        total: Sum of the weighted scores; None for a node that was not scored.
    """

    node: str
    rejected_by: PluginStatus | None = None
    also_rejected_by: tuple[PluginStatus, ...] = ()
    scores: tuple[PluginScore, ...] = ()
    total: int | None = None


class NearMiss(_Answer, frozen=True):
    """A single change that would let the pod fit on some nodes.

    Attributes:
        change: The change, as the end of the sentence "fits on N nodes if ...".
        plugin: The only plugin that rejects these nodes.
        nodes: The nodes.
        distance: How far the change is; lists are sorted by it. A share of the request for a
            resource, at least 1 for other changes.
    """

    change: str
    plugin: str
    nodes: tuple[str, ...]
    distance: float

    @property
    def text(self) -> str:
        """The whole sentence."""
        num_nodes = len(self.nodes)
        where = f"node {self.nodes[0]}" if num_nodes == 1 else f"{num_nodes} nodes"
        return f"fits on {where} if {self.change}"


class PreemptionCandidate(_Answer, frozen=True):
    """A node on which the pod fits after the eviction of `victims` (``namespace/name``)."""

    node: str
    victims: tuple[str, ...]
    pdb_violations: int = 0


class PreemptionAnswer(_Answer, frozen=True):
    """The answer of PostFilter.

    Attributes:
        code: The status code: Success if a node is nominated.
        plugin: The plugin that decided.
        message: Its message; why preemption does not help.
        reasons: The reasons that the message joins.
        nominated_node: The node of the chosen candidate.
        candidates: All candidates.
        tied: The equally good nodes.
        clears_nomination: Whether the pod loses the nomination it has.
    """

    code: str
    plugin: str = ""
    message: str = ""
    reasons: tuple[str, ...] = ()
    nominated_node: str = ""
    candidates: tuple[PreemptionCandidate, ...] = ()
    tied: tuple[str, ...] = ()
    clears_nomination: bool = False


class Wakeup(_Answer, frozen=True):
    """The events that a plugin waits for before the pod is tried again."""

    plugin: str
    events: tuple[str, ...]


class TieNarrowing(_Answer, frozen=True):
    """A Score plugin that was asked about the tied nodes, and the number of nodes that it left."""

    plugin: str
    left: int


class Tie(_Answer, frozen=True):
    """How one of several nodes with the highest total is chosen.

    Attributes:
        nodes: The number of nodes with the highest total.
        plugins: The plugins of ``tieBreaking`` that were asked about them, in order.
        last_resort: ``Random``, ``RoundRobin`` or ``FixedOrder`` if they left several nodes.
    """

    nodes: int
    plugins: tuple[TieNarrowing, ...] = ()
    last_resort: str = ""

    @property
    def text(self) -> str:
        """The whole sentence."""
        asked = [
            each.plugin if each.left == 1 else f"{each.plugin} ({each.left} left)"
            for each in self.plugins
        ]
        by = ", ".join([*asked, self.last_resort] if self.last_resort else asked)
        return f"tie of {self.nodes} nodes, broken by {by}"


class SchedulingExplanation(_Answer, frozen=True):
    """The decision about a pod, with what led to it.

    Attributes:
        outcome: ``Scheduled``, ``Unschedulable``, ``Gated`` or ``Error``.
        message: The message of the PodScheduled condition if there is no node.
        num_nodes: Number of nodes in the cluster.
        pre_enqueue: The rejection of PreEnqueue.
        pre_filter: The rejection of PreFilter.
        node_names: The nodes that PreFilter left, existing or not; None for all.
        left_out_by: The plugins whose PreFilter left nodes out; those have no verdict.
        nodes: The verdicts: feasible nodes by falling total, then the others by name.
        skipped_filters: The Filter plugins that do not concern the pod.
        skipped_scores: The Score plugins that do not concern the pod.
        unschedulable_plugins: The plugins that rejected the pod or a node, or the one that failed.
        reason_counts: Reason -> number of nodes, as in the message.
        near_misses: The smallest changes that would help, nearest first.
        device_shortages: The requests for devices that fail, and on which nodes.
        preemption: The answer of PostFilter; None if it was not asked.
        waits_for: What would wake the pod.
        chosen: The node that the algorithm chooses, one of `best`.
        best: The nodes with the highest total.
        tie: How one of several best nodes is chosen; None without a tie, and for a decision of the
            past, whose record does not have it.
        via_nomination: Whether the pod fits on its nominated node, which is then taken.
        scored: Whether scores counted: a single feasible node is taken unscored.
        first_fit: Whether the first of several feasible nodes is taken, because nothing rates them.
    """

    outcome: str
    message: str = ""
    num_nodes: int = 0
    pre_enqueue: PluginStatus | None = None
    pre_filter: PluginStatus | None = None
    node_names: tuple[str, ...] | None = None
    left_out_by: tuple[str, ...] = ()
    nodes: tuple[NodeVerdict, ...] = ()
    skipped_filters: tuple[str, ...] = ()
    skipped_scores: tuple[str, ...] = ()
    unschedulable_plugins: tuple[str, ...] = ()
    reason_counts: dict[str, int] = msgspec.field(default_factory=dict)
    near_misses: tuple[NearMiss, ...] = ()
    device_shortages: tuple[DeviceShortage, ...] = ()
    preemption: PreemptionAnswer | None = None
    waits_for: tuple[Wakeup, ...] = ()
    chosen: str = ""
    best: tuple[str, ...] = ()
    tie: Tie | None = None
    via_nomination: bool = False
    scored: bool = False
    first_fit: bool = False

    @property
    def ranked(self) -> tuple[NodeVerdict, ...]:
        """The nodes that were scored, best first: those on which the pod fits.

        If it fits on its nominated node, this is the only one.
        """
        return tuple(each for each in self.nodes if each.total is not None)


class LostPoints(_Answer, frozen=True):
    """By how much a node scores less than another one, by plugin; negative where it scores more."""

    node: str
    behind: int
    by_plugin: dict[str, int]


class PodGroupSummary(_Answer, frozen=True):
    """The pod group of a member: its outcome as in `GroupExplanation`, and as a sentence."""

    group: str
    outcome: str
    text: str


class PodExplanation(_Answer, frozen=True):
    """Why a pod is where it is, or why it is pending.

    Attributes:
        pod: ``namespace/name``.
        uid: The pod's UID.
        scheduler_name: ``spec.schedulerName``.
        profile: The profile that answered; another one's if no profile has the pod's scheduler.
        node: The pod's node; empty while it is pending.
        condition: The message of its PodScheduled condition, from the scheduler in charge.
        basis: What the answer is based on.
        decision: The decision.
        runner_up: The best node besides the pod's, or besides the chosen one.
        notes: What the answer cannot know, a sentence each.
        recorded: Whether this is a decision of the past, from its record.
        group: The pod's group, if its members are tried together.
    """

    pod: str
    uid: str
    scheduler_name: str
    profile: str
    basis: str
    decision: SchedulingExplanation
    node: str = ""
    condition: str = ""
    runner_up: LostPoints | None = None
    notes: tuple[str, ...] = ()
    recorded: bool = False
    group: PodGroupSummary | None = None


class RejectedPod(_Answer, frozen=True):
    """A pending pod that a node rejects, and its requests for devices that fail there."""

    pod: str
    rejected_by: tuple[PluginStatus, ...]
    device_shortages: tuple[DeviceShortage, ...] = ()


class NodeExplanation(_Answer, frozen=True):
    """What is on a node, what is free, and which pending pods it rejects.

    Attributes:
        node: The node.
        unschedulable: Whether it is cordoned.
        taints: Its taints as ``key=value:effect``.
        allocatable: Resource -> amount, as Kubernetes writes it.
        free: Resource -> amount that no pod requests.
        pods: Its pods, most important first.
        rejects: The pending pods that do not fit.
        fits: The pending pods that fit.
        devices: Its devices, in the order in which they are tried.
    """

    node: str
    unschedulable: bool = False
    taints: tuple[str, ...] = ()
    allocatable: dict[str, str] = msgspec.field(default_factory=dict)
    free: dict[str, str] = msgspec.field(default_factory=dict)
    pods: tuple[str, ...] = ()
    rejects: tuple[RejectedPod, ...] = ()
    fits: tuple[str, ...] = ()
    devices: tuple[NodeDevice, ...] = ()
