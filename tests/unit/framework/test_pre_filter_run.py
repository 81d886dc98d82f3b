from __future__ import annotations

import pytest

from stowage.api.status import SKIP, SUCCESS, Code, error, unresolvable, unschedulable
from stowage.framework import CycleState, PreFilterOutcome, PreFilterResult
from tests.support.builders import make_node, make_pod
from tests.support.mirrored_cluster import MirroredCluster
from tests.support.plugins.small_plugins import FixedPreFilter, framework_of


def _run(*plugins: FixedPreFilter) -> tuple[PreFilterOutcome, CycleState]:
    cluster = MirroredCluster([make_node("n0")])
    state = CycleState()
    outcome = framework_of(*plugins).run_pre_filter(
        state, cluster.info(make_pod("p")), cluster.snapshot()
    )
    return outcome, state


def _only(*names: str) -> PreFilterResult:
    return PreFilterResult(SUCCESS, frozenset(names))


def test_plugins_that_return_skip_are_recorded() -> None:
    outcome, state = _run(FixedPreFilter("A", PreFilterResult(SKIP)), FixedPreFilter("B"))
    assert outcome.status.is_success
    assert state.skip_filter == {"A"}


def test_node_names_of_several_plugins_are_intersected() -> None:
    outcome, _ = _run(
        FixedPreFilter("A", _only("n0", "n1")),
        FixedPreFilter("B"),
        FixedPreFilter("C", _only("n1")),
    )
    assert outcome.node_names == frozenset({"n1"})
    assert outcome.plugins == {"A", "C"}


@pytest.mark.parametrize(
    ("results", "want"),
    [
        ([_only()], "node(s) didn't satisfy plugin A"),
        (
            [_only("n0"), _only("n1")],
            "node(s) didn't satisfy plugin(s) [A B] simultaneously",
        ),
    ],
)
def test_an_empty_intersection_is_unresolvable(results: list[PreFilterResult], want: str) -> None:
    last = FixedPreFilter("Z")
    plugins = [FixedPreFilter(name, result) for name, result in zip("AB", results, strict=False)]
    outcome, _ = _run(*plugins, last)
    assert outcome.status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert outcome.status.message == want
    assert outcome.plugins == {plugin.name for plugin in plugins}
    assert last.asked == 0


def test_an_unresolvable_rejection_ends_the_run() -> None:
    last = FixedPreFilter("B")
    outcome, _ = _run(FixedPreFilter("A", PreFilterResult(unresolvable("no"))), last)
    assert (outcome.status.plugin, outcome.status.message) == ("A", "no")
    assert last.asked == 0


def test_after_unschedulable_the_other_plugins_still_run() -> None:
    last = FixedPreFilter("B")
    outcome, _ = _run(FixedPreFilter("A", PreFilterResult(unschedulable("no"))), last)
    assert (outcome.status.plugin, outcome.status.code) == ("A", Code.UNSCHEDULABLE)
    assert last.asked == 1


def test_the_error_message_equals_that_of_kube_scheduler() -> None:
    outcome, _ = _run(FixedPreFilter("A", PreFilterResult(error("lost"))))
    assert (outcome.status.code, outcome.status.plugin) == (Code.ERROR, "A")
    assert outcome.status.message == 'running PreFilter plugin "A": lost'
