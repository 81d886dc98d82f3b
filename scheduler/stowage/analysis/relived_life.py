"""Lives through the events of a recording with an engine that decides by itself."""

from __future__ import annotations

from collections.abc import Sequence

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.analysis.loaded_cluster import LoadedCluster
from stowage.analysis.outside_events import OutsideEvents
from stowage.analysis.pod_stories import PodStory
from stowage.analysis.recorded_life import RecordedLife
from stowage.analysis.utilisation import UtilisationSamples
from stowage.analysis.virtual_cluster import VirtualCluster
from stowage.api.events import Event, NodeGone
from stowage.api.instructions import BindByExtender, BindPod, EvictPod, Instruction
from stowage.engine import Engine
from stowage.engine.journal import Entry, HandleCall


class RelivedLife:
    """Takes the calls of a recording, oldest first, with `add`.

    The scheduler takes no time: it decides as soon as a pod is ready, bindings succeed at once, and
    preempted pods go at once. Of nodes that are as good as each other the first one wins.

    Args:
        engine: An engine without pods.
        recorded: The whole recording.
        posted: Events that plugins post; emptied when they are handled.
        follows_configuration: Whether recorded changes of the configuration apply.

    Attributes:
        samples: The utilisation.
        num_preempted: Number of preempted pods.
    """

    def __init__(
        self,
        engine: Engine,
        recorded: RecordedLife,
        posted: list[Event],
        *,
        follows_configuration: bool,
    ) -> None:
        loaded = LoadedCluster(ClusterObjects(), engine, {})
        self._cluster = VirtualCluster(loaded, recorded.started, self._observe)
        self._outside = OutsideEvents(
            self._cluster, recorded, follows_configuration=follows_configuration
        )
        self._recorded = recorded
        self.samples = UtilisationSamples()
        self.num_preempted = 0
        self._posted = posted
        self._decides = False

    @property
    def stories(self) -> dict[str, PodStory]:
        """UID in the recording -> story of the pod."""
        return self._outside.stories

    def add(self, entry: Entry) -> None:
        """Live through the time until a recorded call, and through its events from outside."""
        if self._decides:
            self._cluster.run(entry.now)
        self._cluster.now = max(self._cluster.now, entry.now)
        snapshot = self._cluster.engine.state.cache.snapshot()
        self.samples.advance(entry.now, snapshot)
        if isinstance(entry, HandleCall):
            self._happen(entry.events, entry.now)
        self._decides = entry.now >= self._recorded.decides_from
        if self._decides:
            self._cluster.run(entry.now)

    def _happen(self, events: Sequence[Event], now: float) -> None:
        adapted = [each for event in events for each in self._outside.adapt(event, now)]
        shown = [*self._posted, *adapted]
        self._posted.clear()
        if shown:
            self._cluster.show(shown)
        for event in adapted:
            if isinstance(event, NodeGone):
                self._evict_strays(event.name)

    def _evict_strays(self, node_name: str) -> None:
        for pod in self._outside.strays(node_name):
            story = self._outside.story_at(pod.metadata.namespaced_name)
            if story is not None:
                story.node = ""
            self._cluster.evict_pod(pod)

    def _observe(self, instruction: Instruction) -> None:
        match instruction:
            case BindPod() | BindByExtender():
                story = self._outside.story_at(instruction.pod.key)
                if story is not None:
                    story.place(instruction.node_name, self._cluster.now)
                    story.tied = instruction.pod.key in self._cluster.tied
            case EvictPod():
                self.num_preempted += 1
                story = self._outside.story_at(instruction.victim.key)
                if story is not None:
                    story.node = ""
