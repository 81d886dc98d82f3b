"""A pod group that is not tried in every topology domain goes to one that is as good as the best.

The other side of the comparison is an engine that knows nothing about the domains beforehand, and
so tries the group in each of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stowage.api.objects.node import Taint
from stowage.api.objects.pod import Affinity, PodAffinity, TopologySpreadConstraint
from stowage.framework import PlacedMembers
from stowage.framework.placements import PlacementRun
from stowage.state import Snapshot
from tests.stories.gang_driver import GangDriver, make_group
from tests.support.builders import HOSTNAME, affinity_term, label_selector, make_pod

GPU = "example.com/gpu"
_LABELS = {"app": "gang"}
_MEMBERS = label_selector(_LABELS)
#: Node: (cpus, GPUs, whether it is tainted, cpus of the pods that run there).
Rack: TypeAlias = list[tuple[int, int, bool, list[int]]]

_racks = st.lists(
    st.lists(
        st.tuples(
            st.sampled_from([2, 4]),
            st.sampled_from([0, 2]),
            st.booleans(),
            st.lists(st.integers(1, 2), max_size=2),
        ),
        min_size=1,
        max_size=3,
    ),
    min_size=1,
    max_size=5,
)
_SORTS: tuple[dict[str, Any], ...] = (
    {"cpu": "1"},
    {"cpu": "2", "memory": "1Gi"},
    {"cpu": "1", "requests": {GPU: "1"}},
    {"cpu": "1", "host_ports": [80]},
    {
        "cpu": "1",
        "affinity": Affinity(pod_affinity=PodAffinity((affinity_term("rack", _MEMBERS),))),
    },
    {
        "cpu": "1",
        "topology_spread_constraints": (
            TopologySpreadConstraint(1, HOSTNAME, "DoNotSchedule", _MEMBERS),
        ),
    },
)
_members = st.lists(st.integers(0, len(_SORTS) - 1), min_size=1, max_size=2).flatmap(
    lambda sorts: st.lists(st.sampled_from(sorts), min_size=1, max_size=5)
)


def _after(racks: Sequence[Rack], members: Sequence[int], least: int) -> GangDriver:
    """The cluster after one attempt of the group."""
    driver = GangDriver()
    for rack, nodes in enumerate(racks):
        for number, (cpus, gpus, is_tainted, running) in enumerate(nodes):
            name = f"r{rack}-{number}"
            driver.add_nodes(
                name,
                cpu=str(cpus),
                memory="4Gi",
                labels={"rack": f"r{rack}"},
                allocatable={GPU: str(gpus)} if gpus else {},
                taints=[Taint("k", "", "NoSchedule")] if is_tainted else [],
            )
            for index, cpu in enumerate(running):
                pod = make_pod(f"{name}-{index}", cpu=str(cpu), node=name, labels=_LABELS)
                driver.show(pod)
    driver.show_group(make_group(min_count=min(least, len(members)), topology="rack"))
    for number, sort in enumerate(members):
        driver.create_members(f"p-{number}", labels=_LABELS, **_SORTS[sort])
    driver.schedule()
    return driver


def _placed(driver: GangDriver) -> list[str]:
    return [driver.node_of(name) for name in driver.bound() if name.startswith("p-")]


@contextmanager
def _every_domain_tried() -> Iterator[list[dict[str, int]]]:
    """Nothing is known beforehand; collects the total of each feasible rack of each attempt."""
    found: list[dict[str, int]] = []
    best = PlacementRun.best

    def noting(
        run: PlacementRun, snapshot: Snapshot, placements: Sequence[PlacedMembers]
    ) -> list[int]:
        totals = np.zeros(len(placements), dtype=np.int64)
        for scorer, weight in run._scorers:  # noqa: SLF001 - the totals are nobody else's
            totals += scorer.score_placements(snapshot, placements) * weight
        racks = [snapshot.node_names[each.rows[0]].partition("-")[0] for each in placements]
        found.append(dict(zip(racks, totals.tolist(), strict=True)))
        return best(run, snapshot, placements)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PlacementRun, "outlook", lambda *_: None)
        patch.setattr(PlacementRun, "best", noting)
        yield found


@settings(max_examples=150, deadline=None)
@given(racks=_racks, members=_members, least=st.integers(1, 5))
def test_a_group_gets_a_domain_with_the_highest_score(
    racks: list[Rack], members: list[int], least: int
) -> None:
    with _every_domain_tried() as totals:
        exhaustive = _after(racks, members, least)
    driver = _after(racks, members, least)
    assert bool(_placed(driver)) == bool(_placed(exhaustive))
    if not _placed(driver):
        return
    (rack,) = {node.partition("-")[0] for node in _placed(driver)}
    if totals:
        assert totals[0][rack] == max(totals[0].values())
    else:  # only one rack holds enough of the group
        assert {node.partition("-")[0] for node in _placed(exhaustive)} == {rack}
    driver.check_replay()


@settings(max_examples=150, deadline=None)
@given(racks=_racks, members=_members, least=st.integers(1, 5), grows=st.booleans())
def test_what_a_group_without_room_waits_for_is_known_without_trying_every_domain(
    racks: list[Rack], members: list[int], least: int, grows: bool
) -> None:
    """When the first rack gets nodes, or gets rid of its pods, both go in, or neither does."""
    make_room = _add_nodes if grows else _end_pods
    with _every_domain_tried():
        exhaustive = _after(racks, members, least)
        make_room(exhaustive)
    driver = _after(racks, members, least)
    make_room(driver)
    assert bool(_placed(driver)) == bool(_placed(exhaustive))


def _add_nodes(driver: GangDriver) -> None:
    for name in ("r0-new-0", "r0-new-1"):
        driver.add_nodes(name, memory="4Gi", labels={"rack": "r0"}, allocatable={GPU: "2"})
    driver.run(12)


def _end_pods(driver: GangDriver) -> None:
    for name in list(driver.pods):
        if name.startswith("r0-"):
            driver.delete(name)
    driver.run(12)
