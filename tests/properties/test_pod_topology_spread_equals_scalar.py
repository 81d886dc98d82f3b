"""PodTopologySpread decides and scores as its scalar twin after any changes."""

from __future__ import annotations

from functools import partial
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from stowage.api.objects.pod import TopologySpreadConstraint
from stowage.framework.cycle_state import CycleState
from stowage.plugins.pod_topology_spread import (
    DefaultConstraint,
    PodTopologySpread,
    PodTopologySpreadArgs,
)
from stowage.state import snapshot as snapshots
from stowage.state.snapshot import NodeView, Snapshot
from tests.properties.plugin_life import Asking, check_a_life
from tests.support.builders import HOSTNAME, ZONE
from tests.support.generators.random_cluster import RACK, RandomCluster
from tests.support.mirrored_cluster import MirroredCluster, existing_nodes, verdicts_by_node
from tests.support.plugins.shared_scores import check_shared_scores
from tests.support.scalar import pod_topology_spread as twin
from tests.support.scalar.cluster import PlainCluster

default_constraints = st.lists(
    st.builds(
        DefaultConstraint,
        max_skew=st.integers(1, 3),
        topology_key=st.sampled_from((HOSTNAME, ZONE, RACK)),
        when_unsatisfiable=st.sampled_from(("DoNotSchedule", "ScheduleAnyway")),
    ),
    max_size=3,
).map(tuple)
arguments = st.one_of(
    st.just(PodTopologySpreadArgs()),
    st.builds(
        PodTopologySpreadArgs,
        default_constraints=default_constraints,
        defaulting_type=st.just("List"),
    ),
)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32 - 1), arguments, st.sampled_from((0, 8)))
def test_verdicts_and_scores_equal_the_twins(
    seed: int, args: PodTopologySpreadArgs, nodes_a_value: int
) -> None:
    """One plugin and one cache see all changes; the twin starts afresh each time.

    Labels have many values for the number of nodes, or count as having few.
    """
    with patch.object(snapshots, "_NODES_A_VALUE", nodes_a_value):
        _check_a_life(seed, args)


def _check_a_life(seed: int, args: PodTopologySpreadArgs) -> None:
    plugin = PodTopologySpread(args)
    check_a_life(
        RandomCluster(seed, spread=True),
        partial(_check_filter, plugin),
        partial(_check_score, plugin),
    )


def _twin_defaults(args: PodTopologySpreadArgs) -> twin.Defaults:
    if args.is_system:
        return twin.Defaults()
    listed = tuple(
        TopologySpreadConstraint(
            max_skew=each.max_skew,
            topology_key=each.topology_key,
            when_unsatisfiable=each.when_unsatisfiable,
        )
        for each in args.default_constraints
    )
    return twin.Defaults(listed, system=False)


def _check_filter(
    plugin: PodTopologySpread, plain: PlainCluster, snapshot: Snapshot, asking: Asking
) -> None:
    (pod, info), state = asking, CycleState()
    expected = twin.pre_filter(plain, _twin_defaults(plugin.args), pod)
    answer = plugin.pre_filter(state, info, snapshot)
    assert answer.status.is_skip == (expected is None)
    if expected is None:
        return
    view = existing_nodes(snapshot)
    found = verdicts_by_node(plugin.filter(state, info, view), view)
    wanted = {name: twin.filter_node(expected, pod, node) for name, node in plain.nodes.items()}
    assert found == {name: reason for name, reason in wanted.items() if reason}


def _check_score(
    plugin: PodTopologySpread, cluster: MirroredCluster, asking: Asking, view: NodeView
) -> None:
    (pod, info), state = asking, CycleState()
    feasible = [cluster.plain.nodes[name] for name in view.names]
    expected = twin.scores(cluster.plain, _twin_defaults(plugin.args), pod, feasible)
    assert plugin.pre_score(state, info, view).is_skip == (expected is None)
    if expected is None:
        return
    raw = plugin.score(state, info, view)
    assert (raw.tolist(), plugin.normalize_score(state, info, view, raw).tolist()) == expected
    check_shared_scores(plugin, state, info, view, raw)
