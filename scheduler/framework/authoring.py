"""Everything the author of a plugin imports; nothing else of the package is a promise to them.

A plugin is a class with a ``name`` and the methods of the extension points it takes part in::

    from scheduler.framework.authoring import NodeInfo, PluginArgs, PodInfo, Reads

    class PreferLabel:
        name = "PreferLabel"
        score_reads = Reads.NODE

        class Args(PluginArgs):
            key: str = "disk"
            value: str = "ssd"

        def __init__(self, args: Args) -> None:
            self.args = args

        def score_node(self, pod: PodInfo, node: NodeInfo) -> int:
            return 100 if node.labels.get(self.args.key) == self.args.value else 0

One node at a time: ``score_node(pod, node)`` and ``filter_node(pod, node)``, which answers None or
the reason why not. All nodes in one call, with numpy: ``score(state, pod, nodes)`` and
``filter(state, pod, nodes)``, as the plugins of `scheduler.plugins` do; if both forms are there,
this one counts. The other methods are described in `scheduler.framework.extension_points`;
``pre_bind`` is the only coroutine and the only one that may do I/O.

``score_reads`` and ``filter_reads`` say what the answer depends on. `Reads.NODE` and `Reads.USAGE`
mean: on what pods of one template have in common, and on that node; then answers are kept and the
plugin is asked again only for nodes that changed. Without them it is asked in every cycle for
every node.

A constructor may take ``args``, of the class's ``Args``, and a `Handle` as ``handle``.
"""

from scheduler.api.config_errors import ConfigError
from scheduler.api.events import ActionType, ClusterEvent, EventResource, QueueingHint
from scheduler.api.instructions import BindPod
from scheduler.api.status import (
    SKIP,
    SUCCESS,
    WAIT,
    Code,
    Status,
    error,
    unresolvable,
    unschedulable,
)
from scheduler.framework.adapted_plugin import PluginArgs
from scheduler.framework.cycle_state import CycleState
from scheduler.framework.diagnosis import Diagnosis
from scheduler.framework.extension_points import EventRegistration, PreFilterResult, Reads
from scheduler.framework.handle import Handle, WaitingPod
from scheduler.framework.preemption import Candidate, DryRun, Preemption
from scheduler.framework.scalar import NodeInfo
from scheduler.framework.scores import default_normalize_score
from scheduler.framework.verdict import (
    ACCEPT_ALL,
    BoolArray,
    FilterVerdict,
    Int64Array,
    Rejection,
)
from scheduler.state.pod_info import PodInfo
from scheduler.state.snapshot import NodeView, Snapshot

__all__ = [
    "ACCEPT_ALL",
    "SKIP",
    "SUCCESS",
    "WAIT",
    "ActionType",
    "BindPod",
    "BoolArray",
    "Candidate",
    "ClusterEvent",
    "Code",
    "ConfigError",
    "CycleState",
    "Diagnosis",
    "DryRun",
    "EventRegistration",
    "EventResource",
    "FilterVerdict",
    "Handle",
    "Int64Array",
    "NodeInfo",
    "NodeView",
    "PluginArgs",
    "PodInfo",
    "PreFilterResult",
    "Preemption",
    "QueueingHint",
    "Reads",
    "Rejection",
    "Snapshot",
    "Status",
    "WaitingPod",
    "default_normalize_score",
    "error",
    "unresolvable",
    "unschedulable",
]
