"""A timeline has a bounded number of points, and loses no attempt."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.console.clusters.timeline import MAX_MARKS, MAX_POINTS, Timeline, TimelineBuilder
from tests.support.builders import make_node, make_pod
from tests.support.consoles import START_S


def objects() -> ClusterObjects:
    found = ClusterObjects()
    for obj in (make_node(), make_pod("a"), make_pod("b", node="n"), make_pod("c", node="n")):
        found.add(obj)
    return found


def timeline_of(times: list[float]) -> Timeline:
    builder, known = TimelineBuilder(), objects()
    for at in times:
        builder.add(START_S + at, known, ["scheduled", "error"])
    return builder.timeline(1)


def test_a_point_counts_nodes_and_pods() -> None:
    points = timeline_of([0.0, 60.0]).points
    assert points.time == ["2026-01-01T00:00:00.000Z", "2026-01-01T00:01:00.000Z"]
    assert (points.nodes, points.placed, points.pending) == ([1, 1], [2, 2], [1, 1])
    assert (points.scheduled, points.unschedulable, points.error) == ([1, 1], [0, 0], [1, 1])


@given(st.integers(1, 5 * MAX_POINTS), st.sampled_from([0.001, 1.0, 3600.0]))
def test_points_are_bounded_and_count_every_attempt(number: int, step_s: float) -> None:
    points = timeline_of([step_s * each for each in range(number)]).points
    assert len(points.time) <= MAX_POINTS
    assert sum(points.scheduled) == number
    assert points.time_s == sorted(points.time_s)
    assert points.time_s[0] == START_S


def test_the_last_point_is_close_to_the_end() -> None:
    timeline = timeline_of([float(each) for each in range(4 * MAX_POINTS)])
    last = timeline.points.time_s[-1] - START_S
    assert 4 * MAX_POINTS - last <= 4 * MAX_POINTS / (MAX_POINTS // 4)


def test_marks_are_bounded() -> None:
    builder = TimelineBuilder()
    for number in range(MAX_MARKS + 1):
        builder.mark(START_S, f"node n{number} was removed")
    assert len(builder.timeline(1).marks) == MAX_MARKS
