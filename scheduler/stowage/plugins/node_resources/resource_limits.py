"""Plugin ResourceLimitsPriority: a point for nodes that could hold what the pod's limits allow.

A priority of kube-scheduler 1.12 that breaks ties between nodes with equal scores otherwise.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from stowage.api.objects.pod import Pod
from stowage.api.values.resource_names import CPU, MEMORY
from stowage.api.values.resources import pod_limits
from stowage.framework import CycleState, NoArgs, PluginTraits, Reads
from stowage.framework.scores import POINT
from stowage.framework.verdict import Int64Array
from stowage.state.nodes.resource_index import CPU as CPU_COLUMN
from stowage.state.nodes.resource_index import MEMORY as MEMORY_COLUMN
from stowage.state.pods.pod_class import PodClass
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView


class ResourceLimitsPriority:
    """Prefers nodes whose cpu or memory is not less than the pod's limit."""

    name = "ResourceLimitsPriority"
    traits = PluginTraits(score_reads=Reads.NODE, reads_only_node_demand=True)

    def __init__(self, args: NoArgs) -> None:
        del args
        self._limits: WeakKeyDictionary[PodClass, tuple[int, int]] = WeakKeyDictionary()

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Int64Array:
        """``int64[len(nodes)]``: one point where allocatable cpu or memory reaches the limit.

        A resource without a limit satisfies nothing (``ResourceLimitsPriorityMap`` of 1.12). The
        limits of a pod are those of v1.36: pod-level limits, sidecars and overhead count, too.
        """
        del state
        cpu, memory = self._limits_of(pod.pod_class)
        enough_cpu = nodes.allocatable[:, CPU_COLUMN] >= cpu
        enough_memory = nodes.allocatable[:, MEMORY_COLUMN] >= memory
        satisfied = (enough_cpu & (cpu > 0)) | (enough_memory & (memory > 0))
        points: Int64Array = satisfied * POINT
        return points

    def _limits_of(self, pod_class: PodClass) -> tuple[int, int]:
        known = self._limits.get(pod_class)
        if known is None:
            limits = pod_limits(Pod(spec=pod_class.spec))
            known = self._limits[pod_class] = (limits.get(CPU, 0), limits.get(MEMORY, 0))
        return known
