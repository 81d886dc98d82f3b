"""A profile without Score plugins: a pod goes to the first node on which it fits, in rotation."""

from __future__ import annotations

from typing import Any

import pytest

from stowage.analysis.explain_pod import explain_pod
from stowage.api.attempt_decisions import decision_of
from stowage.api.config.extenders import Extenders
from stowage.api.config.loading import Extender
from stowage.api.events import NodeSeen, PendingPodSeen
from stowage.api.instructions import AttemptResult
from stowage.cli.ask.decision_tables import table_line
from stowage.engine import Engine
from tests.support.builders import make_node, make_pod
from tests.support.clusters import loaded_cluster
from tests.support.engines import DEFAULT_PROFILE, default_engine, of_type

NO_SCORES = {"score": {"disabled": [{"name": "*"}]}, "preScore": {"disabled": [{"name": "*"}]}}
UNRATED = {**DEFAULT_PROFILE, "plugins": NO_SCORES}
"""No plugin rates nodes."""


def engine_of(*cpus: str, **settings: Any) -> Engine:
    engine = default_engine(profile={**UNRATED, **settings})
    engine.handle([NodeSeen(make_node(f"n{n}", cpu=cpu)) for n, cpu in enumerate(cpus)], 0.0)
    return engine


def attempts(engine: Engine, *cpus: str) -> list[AttemptResult]:
    """The attempts of pods that request this much, one after the other."""
    results = []
    for number, cpu in enumerate(cpus):
        engine.handle([PendingPodSeen(make_pod(f"p{number}", cpu=cpu))], 0.0)
        results += of_type(AttemptResult, engine.schedule(0.0, 1))
    return results


def test_pods_go_round_the_nodes_on_which_they_fit() -> None:
    results = attempts(engine_of("1", "8", "8", "1", "8"), *["2"] * 5)
    assert [each.node_name for each in results] == ["n1", "n2", "n4", "n1", "n2"]
    assert all(each.first_fit and each.feasible_nodes == 1 for each in results)
    assert all(each.best is None for each in results)


def test_the_next_search_begins_where_the_last_one_found_another_node() -> None:
    """The search for the large pod passes n0, takes n1, and ends before n3."""
    results = attempts(engine_of("1", "8", "1", "8", "1"), "4", "1", "1", "1")
    assert [each.node_name for each in results] == ["n1", "n3", "n4", "n0"]
    assert [each.evaluated_nodes for each in results] == [3, 1, 1, 1]


def test_the_only_feasible_node_is_found_after_a_search_of_all() -> None:
    (result,) = attempts(engine_of("1", "8", "1"), "4")
    assert (result.node_name, result.evaluated_nodes, result.first_fit) == ("n1", 3, False)


@pytest.mark.parametrize("ties", [{"type": "RoundRobin"}, {"type": "FixedOrder", "seed": 3}])
def test_a_policy_for_ties_has_all_nodes_to_choose_from(ties: dict[str, Any]) -> None:
    (result,) = attempts(engine_of("8", "8", "8", tieBreaking=ties), "1")
    assert (result.feasible_nodes, result.first_fit) == (3, False)


@pytest.mark.parametrize(
    ("extender", "takes_first"),
    [
        (Extender("http://e", filter_verb="f"), False),
        (Extender("http://e", prioritize_verb="p"), False),
        (Extender("http://e", preempt_verb="p"), True),
        (Extender("http://e", bind_verb="b"), True),
    ],
)
def test_extenders_that_judge_nodes_are_shown_all_of_them(
    extender: Extender, takes_first: bool
) -> None:
    engine = engine_of("8")
    engine.state.extenders = Extenders([extender])
    (framework,) = engine.state.frameworks.values()
    assert engine.state.takes_first(framework) is takes_first


def test_record_and_explanation_say_that_the_first_node_was_taken() -> None:
    (result,) = attempts(engine_of("8", "8"), "1")
    decision = decision_of(result, "d-1", "")
    assert decision.first_fit
    assert "the first node that fits" in table_line(decision, wide=True)


def test_an_explanation_shows_all_nodes_and_which_one_would_be_taken() -> None:
    nodes = [make_node(f"n{number}", cpu=cpu) for number, cpu in enumerate(["1", "8", "8"])]
    loaded = loaded_cluster(*nodes, make_pod("p", cpu="2"), profile=UNRATED)
    explained = explain_pod(loaded, "default/p")
    decision = explained.decision
    assert (decision.chosen, decision.best, decision.first_fit) == ("n1", ("n1", "n2"), True)
    assert explained.runner_up is None
    assert any("no Score plugin" in note for note in explained.notes)
