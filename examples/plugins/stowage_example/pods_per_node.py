"""A vectorised filter: one numpy expression for all nodes."""

from collections.abc import Iterator, Sequence

from stowage.framework.authoring import (
    ACCEPT_ALL,
    ActionType,
    ClusterEvent,
    ConfigError,
    CycleState,
    EventRegistration,
    EventResource,
    FilterVerdict,
    NodeView,
    PluginArgs,
    PluginTraits,
    PodInfo,
    Reads,
    Rejection,
)


class PodsPerNode:
    """Rejects nodes that have a maximum number of pods."""

    name = "PodsPerNode"
    traits = PluginTraits(filter_reads=Reads.USAGE)

    class Args(PluginArgs):
        """The maximum; in the configuration ``maxPods``."""

        max_pods: int = 50

        def validate(self) -> Iterator[ConfigError]:
            """Yield an error for each invalid value."""
            if self.max_pods < 1:
                yield ConfigError("maxPods", self.max_pods, "at least 1")

    def __init__(self, args: Args) -> None:
        self.max_pods = args.max_pods

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> FilterVerdict:
        """Reject nodes with the maximum number of pods."""
        full = nodes.num_pods >= self.max_pods
        if not full.any():
            return ACCEPT_ALL
        return FilterVerdict((Rejection("node(s) had enough pods", full),))

    def events_to_register(self) -> Sequence[EventRegistration]:
        """A pod that this plugin rejected may fit after a pod is deleted or a node is added."""
        return (
            EventRegistration(ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE)),
            EventRegistration(ClusterEvent(EventResource.NODE, ActionType.ADD)),
        )
