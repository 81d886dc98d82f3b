"""The cluster of a recording, at any of its times."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.analysis.followed_objects import FollowedObjects
from stowage.analysis.loaded_cluster import LoadedCluster, load_cluster
from stowage.api.attempt_decisions import decision_of
from stowage.api.events import AssignedPodSeen, Event, NodeGone, NodeSeen, PendingPodSeen
from stowage.api.instructions import AttemptResult
from stowage.api.objects.node import Node
from stowage.console.answers.answer import rfc3339
from stowage.console.clusters.moment import Moment
from stowage.console.clusters.source import NotReady, SourceName, SourceState
from stowage.console.clusters.timeline import Timeline, TimelineBuilder
from stowage.console.decisions.history import OBSERVED, RECORDING, DecisionHistory
from stowage.console.decisions.observed import ObservedDecisions
from stowage.console.decisions.rates import MAX_BUCKETS
from stowage.engine.journal import Entry, HandleCall
from stowage.framework import Framework
from stowage.recording.names import segments_from
from stowage.recording.reader import Recording, find_recording
from stowage.recording.segment import Segment

MAX_MOMENTS = 3
"""Times whose clusters are kept loaded."""
MAX_DECISIONS = 50_000
_TOLERANCE_S = 0.001


class _Start(msgspec.Struct, frozen=True):
    """A segment from which the objects can be read, and the time of its first call."""

    path: Path
    unix_s: float


class RecordedCluster:
    """Reads a recording once for its timeline and decisions, and again for each time.

    Args:
        name: Where the objects come from.
        path: The recording.
        make_frameworks: Makes the profiles anew: a loaded cluster needs its own.
        fork_lock: Held while another thread works.

    Attributes:
        notes: What the answers do not know.
    """

    is_live = False

    def __init__(
        self,
        name: SourceName,
        path: Path,
        make_frameworks: Callable[[], Sequence[Framework]],
        fork_lock: asyncio.Lock,
    ) -> None:
        self.name = name
        self.frameworks: Sequence[Framework] = make_frameworks()
        self.notes: list[str] = []
        self.version = 1
        self.state = SourceState()
        self.timeline: Timeline | None = None
        self._path = find_recording(path)
        self._make_frameworks = make_frameworks
        self._fork_lock = fork_lock
        self._history = DecisionHistory(RECORDING, max_decisions=MAX_DECISIONS)
        self._builder = TimelineBuilder()
        self._starts: list[_Start] = []
        self._moments: OrderedDict[float, Moment] = OrderedDict()

    def read(self) -> None:
        """Read the recording: timeline, decisions, and where its segments begin.

        Raises:
            UnreadableRecording: It is damaged.
            OSError: It cannot be read.
        """
        with Recording(self._path) as recording:
            offset = recording.header.unix_offset_s
            if not recording.header.decisions:
                self._history = DecisionHistory(OBSERVED, max_decisions=MAX_DECISIONS)
            pass_ = _FirstPass(self._history, self._builder, offset)
            for entry in recording.calls():
                pass_.add(entry)
            if recording.end:
                self.notes.append(f"the recording ends: {recording.end}")
        self._starts = list(_starts(self._path))
        self.timeline = self._builder.timeline(self.version)

    async def at(self, unix_s: float | None) -> Moment:
        """See `ClusterSource`."""
        if self.timeline is None:
            raise NotReady("the recording is still being read")
        end_s, start_s = self._builder.end_s, self._builder.start_s
        at = end_s if unix_s is None else min(max(unix_s, start_s), end_s)
        async with self._fork_lock:
            moment = self._moments.get(at)
            if moment is None:
                moment = await asyncio.to_thread(self._read_moment, at)
                self._moments[at] = moment
                while len(self._moments) > MAX_MOMENTS:
                    self._moments.popitem(last=False)
            self._moments.move_to_end(at)
        return moment

    def _read_moment(self, at: float) -> Moment:
        objects = self._objects_at(at)
        frameworks = self._make_frameworks()
        loaded: LoadedCluster = load_cluster(objects, frameworks, wall_clock=lambda: at)
        duration_s = self._builder.end_s - self._builder.start_s
        history = self._history.until(at, max(1.0, duration_s / MAX_BUCKETS))
        as_of = f"the cluster as of {rfc3339(at)}, from a recording"
        refused = history.refused() if history.source == RECORDING else {}
        return Moment(loaded, frameworks, history, self.version, at, as_of, refused)

    def _objects_at(self, at: float) -> ClusterObjects:
        """The objects as the watches had shown them, read from the last segment before a time."""
        start = next((each for each in reversed(self._starts) if each.unix_s <= at), None)
        path = self._path if start is None else start.path
        followed = FollowedObjects()
        with Recording(path) as recording:
            ends_at = at - recording.header.unix_offset_s
            for entry in recording.calls():
                # A time that was written in milliseconds may be just before its call.
                if entry.now > ends_at + _TOLERANCE_S:
                    break
                seen_at = rfc3339(recording.header.unix_offset_s + entry.now)
                for event in _events(entry):
                    followed.follow(_dated(event, followed.objects, seen_at))
        return followed.objects


def _dated(event: Event, objects: ClusterObjects, seen_at: str) -> Event:
    """The event; a pod without a time of creation, as in simulations, gets that of its first."""
    if not isinstance(event, PendingPodSeen | AssignedPodSeen):
        return event
    metadata = event.pod.metadata
    if metadata.creation_timestamp is not None:
        return event
    known = objects.pod(metadata.namespaced_name)
    is_same = known is not None and known.metadata.uid == metadata.uid
    created = known.metadata.creation_timestamp if known is not None and is_same else seen_at
    dated = replace(event.pod, metadata=replace(metadata, creation_timestamp=created))
    return replace(event, pod=dated)


class _FirstPass:
    """Collects the timeline and the decisions of a recording."""

    def __init__(
        self, history: DecisionHistory, builder: TimelineBuilder, unix_offset_s: float
    ) -> None:
        self._history = history
        self._builder = builder
        self._offset_s = unix_offset_s
        self._followed = FollowedObjects()
        self._observed = ObservedDecisions("seen")
        self._num_calls = 0

    def add(self, entry: Entry) -> None:
        """Read the next call."""
        unix_s = self._offset_s + entry.now
        results = [each.result for each in self._attempts(entry, unix_s)]
        for event in _events(entry):
            results += self._follow(event, unix_s)
        self._builder.add(unix_s, self._followed.objects, results)
        self._followed.objects.pods_by_node().forget_changes()
        self._num_calls += 1

    def _attempts(self, entry: Entry, unix_s: float) -> list[AttemptResult]:
        attempts = [each for each in entry.instructions if isinstance(each, AttemptResult)]
        for each in attempts:
            self._history.add(decision_of(each, f"recorded-{each.decision}", rfc3339(unix_s)))
        return attempts

    def _follow(self, event: Event, unix_s: float) -> list[str]:
        """The result that an event shows, if nothing but events is recorded."""
        objects, results = self._followed.objects, []
        if self._history.source == OBSERVED:
            row = self._observed.see(event, objects, unix_s, is_listed=not self._num_calls)
            if row is not None:
                self._history.add_row(row)
                results.append(row.result)
        if self._num_calls and isinstance(event, NodeGone):
            self._builder.mark(unix_s, f"node {event.name} was removed")
        elif self._num_calls and isinstance(event, NodeSeen):
            name = event.node.metadata.name
            if objects.find(Node, name) is None:
                self._builder.mark(unix_s, f"node {name} was added")
        self._followed.follow(event)
        return results


def _events(entry: Entry) -> Sequence[Event]:
    return entry.events if isinstance(entry, HandleCall) else ()


def _starts(path: Path) -> Iterator[_Start]:
    """The segments with which a reader can begin."""
    for number, each in enumerate(segments_from(path)):
        segment = Segment(each)
        try:
            if number and not segment.header.checkpoint:
                continue
            first = next(segment.entries(), None)
            if first is not None:
                yield _Start(each, segment.header.unix_offset_s + first.now)
        finally:
            segment.close()
