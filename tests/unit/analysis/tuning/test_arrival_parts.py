"""The parts of a workload share no arrival, and together have all of them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.analysis.simulation.timeline import (
    Happening,
    NodeJoins,
    NodeLeaves,
    PodArrives,
    PodLeaves,
    Timeline,
)
from stowage.analysis.tuning.arrival_parts import FirstArrivals, LaterArrivals
from tests.support.builders import make_node, make_pod


class Fixed(msgspec.Struct, frozen=True):
    """A workload of 100 s whose arrivals do not depend on the seed."""

    happenings: tuple[Happening, ...]
    ends_at_s: float | None = 100.0
    name: str = "w"

    def timeline(self, seed: int) -> Timeline:
        return Timeline(ClusterObjects, self.happenings, self.ends_at_s, 100.0)


EARLY, LATE, FIXED = make_pod("early"), make_pod("late"), make_pod("fixed", node="n")
WHOLE = Fixed(
    (
        PodArrives(0.0, FIXED),
        PodArrives(10.0, EARLY, 5.0),
        NodeLeaves(20.0, "n"),
        NodeJoins(69.0, make_node("m")),
        PodArrives(70.0, LATE),
        PodLeaves(80.0, "default/early"),
        PodLeaves(90.0, "default/late"),
    )
)


def names_at(happenings: Sequence[Happening]) -> list[tuple[float, str]]:
    """When what happens, in short."""
    return [(each.at_s, type(each).__name__) for each in happenings]


def test_the_first_part_ends_before_the_cut() -> None:
    part = FirstArrivals(WHOLE, 0.7)
    timeline = part.timeline(1)
    assert list(timeline.happenings) == list(WHOLE.happenings[:4])
    assert (timeline.ends_at_s, timeline.expected_s) == (70.0, 70.0)
    assert part.name == "w, first 70%"


def test_the_later_part_has_the_nodes_as_they_are_and_only_its_own_pods() -> None:
    part = LaterArrivals(WHOLE, 0.7)
    timeline = part.timeline(1)
    assert names_at(list(timeline.happenings)) == [
        (0.0, "PodArrives"),  # has its node from the start
        (0.0, "NodeLeaves"),
        (0.0, "NodeJoins"),
        (0.0, "PodArrives"),
        (20.0, "PodLeaves"),
    ]
    assert (timeline.ends_at_s, round(timeline.expected_s)) == (30.0, 30)
    assert part.name == "w, last 30%"


def test_a_workload_that_drains_still_does() -> None:
    whole = msgspec.structs.replace(WHOLE, ends_at_s=None)
    assert FirstArrivals(whole, 0.5).timeline(1).ends_at_s is None
    assert LaterArrivals(whole, 0.5).timeline(1).ends_at_s is None
