"""A cluster that changes while the console is open, or one that was read from files."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.analysis.explanation import IN_FILES
from stowage.analysis.followed_objects import FollowedObjects
from stowage.analysis.loaded_cluster import LoadedCluster, load_cluster
from stowage.api.events import Event, PendingPodSeen
from stowage.console.answers.answer import InvalidQuestion
from stowage.console.clusters.moment import Moment
from stowage.console.clusters.source import NotReady, SourceName, SourceState
from stowage.console.clusters.stand_ins import decided_by
from stowage.console.clusters.timeline import Timeline
from stowage.console.decisions.history import OBSERVED, DecisionHistory
from stowage.console.decisions.observed import ObservedDecisions
from stowage.console.decisions.row import DecisionRow
from stowage.framework import Framework

NOW = 0.0
"""The engine's time never passes: it makes no attempt, so nothing of it expires."""


class LiveCluster:
    """Keeps a loaded cluster up to date with the events of watches.

    Before `load`, events only add objects: they belong to the first lists.

    Args:
        name: Where the objects come from.
        frameworks: The profiles; used by this cluster only.
        history: Receives the decisions that the watches show, if it is of observed ones.
        unix_s: Returns the seconds since 1970.
        is_live: Whether events follow.

    Attributes:
        state: The connection to the API server.
        decided: Called with each decision that the watches show.
        notes: What the answers do not know.
    """

    def __init__(
        self,
        name: SourceName,
        frameworks: Sequence[Framework],
        history: DecisionHistory,
        unix_s: Callable[[], float],
        *,
        is_live: bool,
    ) -> None:
        self.name = name
        self.is_live = is_live
        self.frameworks: Sequence[Framework] = list(frameworks)
        self.history = history
        self.version = 0
        self.state = SourceState()
        self.notes: list[str] = []
        self.decided: Callable[[DecisionRow], None] = lambda _row: None
        self._unix_s = unix_s
        self._loaded: LoadedCluster | None = None
        self._followed = FollowedObjects()
        self._observed = ObservedDecisions(f"{int(unix_s() * 1e6):x}")

    timeline: Timeline | None = None

    @property
    def is_loaded(self) -> bool:
        """Whether questions can be answered."""
        return self._loaded is not None

    def load(self, objects: ClusterObjects | None = None) -> None:
        """Show the objects to an engine; takes seconds for a large cluster.

        Args:
            objects: The objects; None for those of the events so far.
        """
        if objects is not None:
            self._followed = FollowedObjects(objects)
        self._loaded = load_cluster(
            self._followed.objects, self.frameworks, wall_clock=self._unix_s
        )
        self.notes += self._loaded.problems
        self.version += 1

    def apply(self, events: Sequence[Event]) -> None:
        """Follow the events of watches."""
        loaded = self._loaded
        unix_s = self._unix_s()
        for event in events:
            if self.history.source == OBSERVED:
                self._note_decision(event, unix_s)
            self._followed.follow(event)
        if loaded is None:
            return
        loaded = self._loaded = self._with_profiles_of(events, loaded)
        loaded.engine.handle(events, NOW)
        # Nobody asks what changed, and the record would grow with every pod there ever was.
        loaded.objects.pods_by_node().forget_changes()
        self.version += 1

    def moment(self, unix_s: float) -> Moment:
        """The cluster as it is now.

        Raises:
            NotReady: It is still being read.
        """
        if self._loaded is None:
            raise NotReady("the cluster is still being read")
        as_of = "" if self.is_live else IN_FILES
        return Moment(self._loaded, self.frameworks, self.history, self.version, unix_s, as_of)

    async def at(self, unix_s: float | None) -> Moment:
        """See `ClusterSource`."""
        if unix_s is not None:
            raise InvalidQuestion("at", "only a recording has other times (expected none)")
        return self.moment(self._unix_s())

    def _note_decision(self, event: Event, unix_s: float) -> None:
        objects, is_listed = self._followed.objects, self._loaded is None
        row = self._observed.see(event, objects, unix_s, is_listed=is_listed)
        if row is not None:
            self.history.add_row(row)
            self.decided(row)

    def _with_profiles_of(self, events: Sequence[Event], loaded: LoadedCluster) -> LoadedCluster:
        """The cluster with stand-ins for scheduler names that were not known."""
        named = {
            each.pod.spec.scheduler_name for each in events if isinstance(each, PendingPodSeen)
        }
        known = loaded.engine.state.frameworks.keys()
        if named <= known:
            return loaded
        return decided_by(loaded, self.frameworks, {*known, *named})
