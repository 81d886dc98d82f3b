"""What all policies have in common: the pod's request, Filter, and the choice of GPUs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stowage.framework.authoring import (
    ACCEPT_ALL,
    SKIP,
    ActionType,
    ClusterEvent,
    ConfigError,
    CycleState,
    EventRegistration,
    EventResource,
    FilterVerdict,
    Int64Array,
    NodeView,
    PluginArgs,
    PluginTraits,
    PodInfo,
    PreFilterResult,
    Reads,
    Rejection,
    ReservePlan,
    Snapshot,
    Status,
    unresolvable,
    unschedulable,
)
from stowage_gpushare.devices import GPU, GpuColumns, GpuRequest, as_annotation

RESOURCE = "gpushare.example.com/gpu-milli"
NOT_ENOUGH = "node(s) didn't have enough free GPUs"
TRAITS = PluginTraits(
    filter_reads=Reads.USAGE,
    score_reads=Reads.USAGE,
    reads_only_node_demand=True,
    rejects_per_class=True,
)


@dataclass(frozen=True, slots=True)
class CycleData:
    """What PreFilter leaves to the later extension points of a cycle."""

    request: GpuRequest
    snapshot: Snapshot


class SharingArgs(PluginArgs):
    """The extended resource of which a node has a thousand for each GPU."""

    resource: str = RESOURCE

    def validate(self) -> Iterator[ConfigError]:
        """Yield an error for each invalid value."""
        if "/" not in self.resource:
            yield ConfigError("resource", self.resource, "an extended resource, domain/name")


class GpuSharing:
    """Places pods on GPUs, whole or shared, and scores nothing.

    A shared pod takes the GPU with the least left; pods with whole GPUs take the lowest numbers.
    """

    name = "GpuSharing"
    traits = TRAITS

    class Args(SharingArgs):
        """``resource``."""

    def __init__(self, args: SharingArgs) -> None:
        self.gpus = GpuColumns(args.resource)

    def pre_filter(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult:
        """Read the request, and bring the columns up to date; Filter is for pods with GPUs."""
        total_milli = pod.requests.get(self.gpus.resource, 0)
        request = GpuRequest.of(total_milli)
        if request is None:
            text = f"pod requests {total_milli} of {self.gpus.resource}, expected less than {GPU}"
            return PreFilterResult(unresolvable(f"{text} or whole thousands"))
        state.write(CycleData(request, snapshot))
        if not snapshot.is_what_if:
            self.update(snapshot)
        return PreFilterResult() if request.num else PreFilterResult(SKIP)

    def update(self, snapshot: Snapshot) -> None:
        """Bring the plugin's columns up to date."""
        self.gpus.update(snapshot)

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> FilterVerdict:
        """Reject nodes with too few GPUs that are free enough."""
        request = state.read(CycleData).request
        free = nodes.take(self.gpus.of(nodes).free)
        lacking = request.fits(free).sum(axis=1) < request.num
        if not lacking.any():
            return ACCEPT_ALL
        return FilterVerdict((Rejection(NOT_ENOUGH, lacking),))

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> ReservePlan | Status:
        """Choose the GPUs."""
        data = state.read(CycleData)
        if not data.request.num:
            return ReservePlan()
        row = data.snapshot.row_of(node_name)
        gpus = [] if row is None else self.choose(pod, data.request, row)
        if len(gpus) < data.request.num:
            return unschedulable(f"{node_name} has not enough free GPUs any more")
        return ReservePlan(annotations=as_annotation(gpus))

    def choose(self, pod: PodInfo, request: GpuRequest, row: int) -> list[int]:
        """The GPUs to take of a node; fewer than requested if the pod does not fit."""
        return request.least_free(self.gpus.free[row, : self.gpus.num[row]])

    def events_to_register(self) -> Sequence[EventRegistration]:
        """A rejected pod may fit after a pod is deleted, or a node is added or gets GPUs."""
        return (
            EventRegistration(ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE)),
            EventRegistration(
                ClusterEvent(
                    EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE
                )
            ),
        )


def free_cpu_milli(nodes: NodeView) -> Int64Array:
    """``int64[nodes]``: the CPU that no pod requests."""
    cpu = nodes.snapshot.resources.index_of("cpu")
    free: Int64Array = nodes.allocatable[:, cpu] - nodes.requested[:, cpu]
    return free
