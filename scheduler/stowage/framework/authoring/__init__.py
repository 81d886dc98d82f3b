"""The public API for out-of-tree plugins; no other module of the package is stable for them.

A plugin is a class with a ``name`` and the methods of the extension points it takes part in::

    from stowage.framework.authoring import NodeInfo, PluginArgs, PluginTraits, PodInfo, Reads

    class PreferLabel:
        name = "PreferLabel"
        traits = PluginTraits(score_reads=Reads.NODE)

        class Args(PluginArgs):
            key: str = "disk"
            value: str = "ssd"

        def __init__(self, args: Args) -> None:
            self.args = args

        def score_node(self, pod: PodInfo, node: NodeInfo) -> int:
            return 100 if node.labels.get(self.args.key) == self.args.value else 0

A scalar plugin judges one node per call: ``score_node(pod, node)`` and ``filter_node(pod, node)``,
which returns None or the reason of the rejection. A vectorised plugin judges all nodes in one call
with numpy: ``score(state, pod, nodes)`` and ``filter(state, pod, nodes)``, as the plugins of
`stowage.plugins` do; it takes precedence if a plugin has both. `stowage.framework.extension_points`
describes the other methods. ``pre_bind`` is the only coroutine and the only method that may do I/O.

``traits`` says what the plugin promises about its answers; `PluginTraits` lists the promises and
what each of them saves. With ``score_reads=Reads.NODE`` an answer depends on that node and on what
the pods of one template have in common: the framework keeps it, and asks the plugin again only
about nodes that changed. Without traits the plugin is asked in every cycle about every node.

A constructor may have a parameter ``args``, which takes a value of the class's ``Args``, and a
parameter ``handle``, which takes a `Handle`.

Design: `adapted_plugin` turns the author's object into a plugin with all members that the runtime
expects, `scalar` adapts methods for single nodes, and `declared_traits` and `checked_answers` check
traits and answers, so that a faulty plugin harms only the pod it is asked about.
"""

from stowage.api.cluster_events import ActionType, ClusterEvent, EventResource, QueueingHint
from stowage.api.config.errors import ConfigError
from stowage.api.instructions import BindPod
from stowage.api.status import SKIP, SUCCESS, WAIT, Code, Status, error, unresolvable, unschedulable
from stowage.api.values.reserved_annotations import RESERVED_PREFIX
from stowage.framework.authoring.adapted_plugin import PluginArgs
from stowage.framework.authoring.scalar import NodeInfo
from stowage.framework.changed_rows import ChangedRows
from stowage.framework.cycle_state import CycleState
from stowage.framework.diagnosis import Diagnosis
from stowage.framework.extension_points import EventRegistration, PreFilterResult, ReservePlan
from stowage.framework.handle import Handle, WaitingPod
from stowage.framework.plugin_traits import PluginTraits, Reads
from stowage.framework.preemption import Candidate, Preemption
from stowage.framework.runtime.dry_run import DryRun
from stowage.framework.scores import default_normalize_score
from stowage.framework.verdict import ACCEPT_ALL, BoolArray, FilterVerdict, Int64Array, Rejection
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView, Snapshot

__all__ = [
    "ACCEPT_ALL",
    "RESERVED_PREFIX",
    "SKIP",
    "SUCCESS",
    "WAIT",
    "ActionType",
    "BindPod",
    "BoolArray",
    "Candidate",
    "ChangedRows",
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
    "PluginTraits",
    "PodInfo",
    "PreFilterResult",
    "Preemption",
    "QueueingHint",
    "Reads",
    "Rejection",
    "ReservePlan",
    "Snapshot",
    "Status",
    "WaitingPod",
    "default_normalize_score",
    "error",
    "unresolvable",
    "unschedulable",
]
