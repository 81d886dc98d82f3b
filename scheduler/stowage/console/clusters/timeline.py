"""The times of a recording, in a bounded number of points."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.api.decisions import RESULTS
from stowage.console.answers.answer import Answer, rfc3339

MAX_POINTS = 1_000
MAX_MARKS = 200
_NODE = "Node"


class TimePoints(Answer, frozen=True):
    """Entry i of each array is point i; results count attempts since the point before."""

    time: list[str]
    time_s: list[float]
    nodes: list[int]
    placed: list[int]
    pending: list[int]
    scheduled: list[int]
    unschedulable: list[int]
    error: list[int]


class Mark(Answer, frozen=True):
    """Something that a person may look for."""

    time: str
    time_s: float
    text: str


class Timeline(Answer, frozen=True):
    """The times of a recording."""

    version: int
    start: str
    end: str
    points: TimePoints
    marks: list[Mark]


class _Point(msgspec.Struct):
    """The cluster after the last call at `unix_s`, since `begun_s`."""

    begun_s: float
    unix_s: float
    nodes: int
    placed: int
    pending: int
    results: Counter[str]


class TimelineBuilder:
    """Collects points; when there are too many, every second one is dropped.

    Attributes:
        start_s: The time of the first point.
        end_s: The time of the last one.
    """

    def __init__(self) -> None:
        self.start_s = 0.0
        self.end_s = 0.0
        self._points: list[_Point] = []
        self._marks: list[Mark] = []
        self._step_s = 0.0
        self._results: Counter[str] = Counter()

    def add(self, unix_s: float, objects: ClusterObjects, results: Iterable[str]) -> None:
        """Count the objects as they are after a call, and the results of its attempts."""
        self._results.update(results)
        self.end_s = unix_s
        if not self._points:
            self.start_s = unix_s
        if not self._points or unix_s - self._points[-1].begun_s > self._step_s:
            self._points.append(_Point(unix_s, unix_s, 0, 0, 0, Counter()))
        self._count(self._points[-1], unix_s, objects)
        if len(self._points) > MAX_POINTS:
            self._thin_out()

    def mark(self, unix_s: float, text: str) -> None:
        """Note something; the first `MAX_MARKS` are kept."""
        if len(self._marks) < MAX_MARKS:
            self._marks.append(Mark(rfc3339(unix_s), unix_s, text))

    def timeline(self, version: int) -> Timeline:
        """The points so far."""
        points = self._points
        times = [each.unix_s for each in points]
        return Timeline(
            version,
            rfc3339(self.start_s),
            rfc3339(self.end_s),
            TimePoints(
                list(map(rfc3339, times)),
                times,
                [each.nodes for each in points],
                [each.placed for each in points],
                [each.pending for each in points],
                *([each.results[result] for each in points] for result in RESULTS),
            ),
            list(self._marks),
        )

    def _count(self, point: _Point, unix_s: float, objects: ClusterObjects) -> None:
        pods = objects.pods_by_node()
        point.unix_s = unix_s
        point.nodes = len(objects.by_kind.get(_NODE, ()))
        point.placed = pods.num_pods - pods.num_pending
        point.pending = pods.num_pending
        point.results.update(self._results)
        self._results.clear()

    def _thin_out(self) -> None:
        """Merge each point with an even place into the one after it; the first stays."""
        first, *others = self._points
        kept = [first]
        for number, point in enumerate(others):
            if number % 2:
                point.results.update(others[number - 1].results)
                kept.append(point)
            elif number == len(others) - 1:
                kept.append(point)
        self._points = kept
        self._step_s = (self.end_s - self.start_s) / (MAX_POINTS // 2)
