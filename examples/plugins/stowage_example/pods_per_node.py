"""The fast kind of plugin: one numpy expression for all nodes."""

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
    """Refuses nodes that have a number of pods."""

    name = "PodsPerNode"
    traits = PluginTraits(filter_reads=Reads.USAGE)

    class Args(PluginArgs):
        """The limit; the file says ``maxPods``."""

        max_pods: int = 50

        def validate(self) -> Iterator[ConfigError]:
            """Yield what is wrong with the values."""
            if self.max_pods < 1:
                yield ConfigError("maxPods", self.max_pods, "at least 1")

    def __init__(self, args: Args) -> None:
        self.max_pods = args.max_pods

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> FilterVerdict:
        """Refuse full nodes."""
        full = nodes.num_pods >= self.max_pods
        if not full.any():
            return ACCEPT_ALL
        return FilterVerdict((Rejection("node(s) had enough pods", full),))

    def events_to_register(self) -> Sequence[EventRegistration]:
        """A pod refused by this plugin may fit once a pod is gone or a node has come."""
        return (
            EventRegistration(ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE)),
            EventRegistration(ClusterEvent(EventResource.NODE, ActionType.ADD)),
        )
