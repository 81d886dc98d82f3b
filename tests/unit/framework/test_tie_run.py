"""Each policy for ties, against its scalar twin."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stowage.api.config.types import TieBreakingType
from stowage.api.status import SUCCESS, Code, Status
from stowage.framework import BrokenTie, CycleState, Draw, PluginFailed, PluginTraits, TiePolicy
from stowage.framework.extension_points import ScorePlugin
from stowage.framework.runtime.tie_run import NodeKeys, TieRun, node_key
from stowage.framework.tie_policy import Narrowing
from stowage.framework.verdict import Int64Array
from stowage.state import NodeView, PodInfo
from tests.support.builders import make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster
from tests.support.plugins.small_plugins import Raises, Rates
from tests.support.scalar import ties as twin
from tests.support.scalar.search_order import nodes_zone_by_zone

NAMES = [f"n{number}" for number in range(8)]


def run(
    policy: TiePolicy | TieRun,
    cluster: MirroredCluster,
    tied: Sequence[str],
    draw: Draw,
    state: CycleState | None = None,
) -> tuple[str, BrokenTie]:
    """The node that is taken, and how."""
    snapshot = cluster.snapshot()
    rows = sorted(row for name in tied if (row := snapshot.row_of(name)) is not None)
    runner = policy if isinstance(policy, TieRun) else TieRun(policy)
    info = cluster.info(make_pod("p"))
    row, tie = runner.run(state or CycleState(), info, snapshot, np.array(rows), draw)
    return snapshot.node_names[row], tie


def unasked(num_nodes: int) -> int:
    raise AssertionError(f"asked to choose among {num_nodes} nodes")


scores = st.dictionaries(st.sampled_from(NAMES), st.integers(0, 2))


@settings(deadline=None)
@given(
    zones=st.lists(st.sampled_from("abc"), min_size=8, max_size=8),
    tied=st.sets(st.sampled_from(NAMES), min_size=2),
    plugins=st.lists(scores, max_size=2),
    last_resort=st.sampled_from(["Random", "RoundRobin", "FixedOrder"]),
    seed=st.integers(-3, 3),
    numbers=st.tuples(st.integers(0, 20), st.integers(0, 20), st.integers(0, 20)),
)
def test_each_policy_takes_the_node_of_its_scalar_twin(
    zones: list[str],
    tied: set[str],
    plugins: list[dict[str, int]],
    last_resort: TieBreakingType,
    seed: int,
    numbers: tuple[int, int, int],
) -> None:
    nodes = [make_node(name, zone=zone) for name, zone in zip(NAMES, zones, strict=True)]
    cluster = MirroredCluster(nodes)
    choice, turn, start = numbers
    draw = Draw(lambda num_nodes: choice % num_nodes, turn, start)
    policy = TiePolicy(
        last_resort, seed, tuple(Rates(f"P{index}", each) for index, each in enumerate(plugins))
    )
    order = nodes_zone_by_zone([(each.metadata.name, each.metadata.labels) for each in nodes])
    resorts = {
        "Random": twin.at_random(draw),
        "RoundRobin": twin.in_turn(order, draw),
        "FixedOrder": twin.first_by_seed(seed),
    }
    in_rows = [name for name in NAMES if name in tied]
    taken, tie = run(policy, cluster, in_rows, draw)
    assert taken == twin.chosen_of_tied(in_rows, plugins, resorts[last_resort])
    assert tie.num_nodes == len(tied)
    assert (tie.last_resort is None) == (bool(tie.narrowings) and tie.narrowings[-1].left == 1)


def test_round_robin_takes_the_best_nodes_in_turn() -> None:
    """Three nodes with 10 points of ``selectHost`` in v1.12: 0, 1, 2, 0, ..."""
    cluster = MirroredCluster([make_node(name) for name in NAMES])
    taken = [
        run(TiePolicy("RoundRobin"), cluster, ["n1", "n4", "n6"], Draw(unasked, turn))[0]
        for turn in range(5)
    ]
    assert taken == ["n1", "n4", "n6", "n1", "n4"]


def test_the_fixed_order_stays_the_same_whichever_nodes_come_and_go() -> None:
    cluster = MirroredCluster([make_node(name) for name in NAMES])
    runner = TieRun(TiePolicy("FixedOrder", seed=7))
    order = []
    left = list(NAMES)
    while len(left) > 1:
        order.append(run(runner, cluster, left, Draw(unasked))[0])
        left.remove(order[-1])
    assert order != sorted(order)
    for number in range(200):
        cluster.update_node(make_node(f"more{number}"))
    assert run(runner, cluster, order, Draw(unasked))[0] == order[0]
    cluster.remove_node(order[0])
    cluster.update_node(make_node("in its row"))
    assert run(runner, cluster, order[1:], Draw(unasked))[0] == order[1]
    fresh = TieRun(TiePolicy("FixedOrder", seed=7))
    everything = [*order[1:], "in its row", "more7"]
    assert run(runner, cluster, everything, Draw(unasked)) == run(
        fresh, cluster, everything, Draw(unasked)
    )


def test_another_seed_gives_another_order() -> None:
    cluster = MirroredCluster([make_node(name) for name in NAMES])
    taken = {
        run(TiePolicy("FixedOrder", seed), cluster, NAMES, Draw(unasked))[0] for seed in range(9)
    }
    assert len(taken) > 3


def test_a_further_plugin_is_asked_among_the_nodes_that_are_still_tied() -> None:
    cluster = MirroredCluster([make_node(name) for name in NAMES])
    first, second = Rates("A", {"n1": 5, "n2": 5, "n3": 1}), Rates("B", {"n3": 9, "n2": 1})
    third = Rates("C", {})
    policy = TiePolicy(plugins=(first, second, third))
    taken, tie = run(policy, cluster, ["n1", "n2", "n3"], Draw(unasked))
    assert (taken, first.asked, second.asked, third.asked) == ("n2", [3], [2], [])
    assert tie == BrokenTie(3, (Narrowing("A", 2), Narrowing("B", 1)))


class PreScores(Rates):
    """A Score plugin whose PreScore notes the nodes, and reads what an earlier point has left."""

    status = SUCCESS
    seen: tuple[str, ...] = ()

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Status:
        self.seen = tuple(nodes.names)
        state.write(self.seen)
        return self.status


@pytest.mark.parametrize(("status", "taken"), [(SUCCESS, "n2"), (Status(Code.SKIP), "n1")])
def test_pre_score_sees_the_tied_nodes_and_may_skip_the_plugin(status: Status, taken: str) -> None:
    cluster = MirroredCluster([make_node(name) for name in NAMES])
    plugin = PreScores("A", {"n2": 1})
    plugin.status = status
    state = CycleState()
    state.write(("of all nodes",))
    state.skip_score.add("A")
    draw = Draw(lambda _num_nodes: 0)
    assert run(TiePolicy(plugins=(plugin,)), cluster, ["n1", "n2"], draw, state)[0] == taken
    assert plugin.seen == ("n1", "n2")
    assert state.read(tuple) == ("of all nodes",)


class Beyond:
    """Scores beyond 100."""

    name = "Beyond"
    traits = PluginTraits()

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Int64Array:
        return np.full(len(nodes), 101, dtype=np.int64)


@pytest.mark.parametrize("plugin", [Raises(), Beyond()])
def test_a_plugin_that_fails_fails_the_attempt(plugin: ScorePlugin) -> None:
    cluster = MirroredCluster([make_node(name) for name in NAMES])
    with pytest.raises(PluginFailed, match=f'plugin "{plugin.name}" (failed|returns an)'):
        run(TiePolicy(plugins=(plugin,)), cluster, NAMES, Draw(unasked))


def test_a_last_resort_says_how_far_plugins_narrowed_the_tie() -> None:
    cluster = MirroredCluster([make_node(name) for name in NAMES])
    policy = TiePolicy("FixedOrder", plugins=(Rates("A", {"n1": 5, "n2": 5, "n3": 1}),))
    _, tie = run(policy, cluster, ["n1", "n2", "n3"], Draw(unasked))
    assert tie == BrokenTie(3, (Narrowing("A", 2),), "FixedOrder")


class PrefersItsName:
    """Scores the node with the pod's name, and says so only when it normalises."""

    name = "PrefersItsName"
    traits = PluginTraits()

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Int64Array:
        return np.array([len(pod.name)] * len(nodes), dtype=np.int64)

    def normalize_score(
        self, state: CycleState, pod: PodInfo, nodes: NodeView, scores: Int64Array
    ) -> Int64Array:
        return np.array([50 * (name == pod.name) for name in nodes.names]) + scores


def test_a_plugin_of_a_policy_scores_and_normalises_for_the_pod() -> None:
    cluster = MirroredCluster([make_node(name) for name in ("o", "p", "q")])
    policy = TiePolicy(plugins=(PrefersItsName(),))
    assert run(policy, cluster, ["o", "p", "q"], Draw(unasked))[0] == "p"


def test_the_number_of_a_node_is_exactly_that_of_the_seed_and_its_name() -> None:
    snapshot = MirroredCluster([make_node(name) for name in NAMES]).snapshot()
    keys = NodeKeys(7).of(snapshot)
    found = {name: int(keys[snapshot.row_of(name) or 0]) for name in NAMES}
    assert found == {name: node_key(7, name) for name in NAMES}


def test_the_numbers_of_nodes_that_do_not_change_are_computed_once() -> None:
    cluster, keys = MirroredCluster([make_node("a"), make_node("b")]), NodeKeys(seed=1)
    first = keys.of(cluster.snapshot())
    assert keys.of(cluster.snapshot()) is first
