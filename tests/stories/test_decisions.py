"""Each attempt has a number, the scores of its best nodes, and an Event with the same number."""

from __future__ import annotations

from stowage.api.config.extenders import Extenders
from stowage.api.config.types import Extender
from stowage.api.decisions import PluginScore
from stowage.api.events import (
    AssignedPodSeen,
    BindFailed,
    BindSucceeded,
    ExtendersAnswered,
    NodeSeen,
    PendingPodSeen,
)
from stowage.api.instructions import AttemptResult, BindPod, ConsultExtenders, EmitEvent
from stowage.engine import Engine
from tests.support.builders import make_node, make_pod
from tests.support.engines import default_engine, of_type


def _nodes(num: int) -> list[NodeSeen]:
    return [NodeSeen(make_node(f"n{index}", cpu=str(index + 2))) for index in range(num)]


def test_a_scheduled_pods_attempt_has_the_best_nodes_with_their_scores(engine: Engine) -> None:
    engine.handle([*_nodes(12), PendingPodSeen(make_pod("p", cpu="1"))], 0.0)
    (attempt,) = of_type(AttemptResult, engine.schedule(0.0, 1))
    assert attempt.best is not None
    nodes = attempt.best.scored_nodes()
    assert (nodes[0].node, attempt.node_name) == ("n11", "n11")
    totals = [each.total for each in nodes]
    assert (len(totals), totals) == (10, sorted(totals, reverse=True))
    for node in nodes:
        assert node.total == sum(each.weighted for each in node.scores)
    fit = {each.plugin: each for each in nodes[0].scores}["NodeResourcesFit"]
    # 12 of 13 CPUs stay free.
    assert fit == PluginScore("NodeResourcesFit", 1, fit.raw, fit.raw, fit.raw)
    assert fit.raw > 90


def test_a_pod_with_one_feasible_node_has_no_scores(engine: Engine) -> None:
    engine.handle([*_nodes(1), PendingPodSeen(make_pod("p"))], 0.0)
    (attempt,) = of_type(AttemptResult, engine.schedule(0.0, 1))
    assert (attempt.node_name, attempt.best) == ("n0", None)


def test_the_scheduled_event_has_the_number_of_the_attempt(engine: Engine) -> None:
    engine.handle([*_nodes(2), *(PendingPodSeen(make_pod(name)) for name in "pq")], 0.0)
    instructions = engine.schedule(0.0, 2)
    numbers = {each.pod.name: each.decision for each in of_type(AttemptResult, instructions)}
    assert numbers == {"p": 1, "q": 2}
    first, second = of_type(BindPod, instructions)
    for bind in (second, first):
        answer = engine.handle([BindSucceeded(bind.pod.uid, bind.node_name)], 1.0)
        (event,) = of_type(EmitEvent, answer)
        assert event.decision == numbers[bind.pod.name]


def test_a_refused_pods_attempt_has_the_counts_by_reason(engine: Engine) -> None:
    engine.handle([*_nodes(3), PendingPodSeen(make_pod("p", cpu="4"))], 0.0)
    engine.handle([PendingPodSeen(make_pod("q", cpu="40"))], 0.0)
    instructions = engine.schedule(0.0, 2)
    scheduled, refused = of_type(AttemptResult, instructions)
    assert (scheduled.result, scheduled.reason_counts) == ("scheduled", {})
    assert (refused.result, refused.reason_counts) == ("unschedulable", {"Insufficient cpu": 3})
    (event,) = of_type(EmitEvent, instructions)
    assert event.decision == refused.decision == 2


def test_a_preemptors_attempt_has_the_nominated_node(engine: Engine) -> None:
    victim = make_pod("victim", cpu="2", node="n0")
    preemptor = make_pod("p", cpu="2", priority=10)
    engine.handle([*_nodes(1), AssignedPodSeen(victim), PendingPodSeen(preemptor)], 0.0)
    (attempt,) = of_type(AttemptResult, engine.schedule(0.0, 1))
    assert (attempt.result, attempt.nominated_node_name) == ("unschedulable", "n0")


def test_a_binding_that_fails_is_an_attempt_of_its_own(engine: Engine) -> None:
    engine.handle([*_nodes(1), PendingPodSeen(make_pod("p"))], 0.0)
    (bind,) = of_type(BindPod, engine.schedule(0.0, 1))
    answer = engine.handle([BindFailed(bind.pod.uid, "n0", "refused")], 1.0)
    (attempt,) = of_type(AttemptResult, answer)
    (event,) = of_type(EmitEvent, answer)
    assert (attempt.result, attempt.decision, event.decision) == ("error", 2, 2)


def test_the_scores_of_extenders_are_recorded() -> None:
    extender = Extender(url_prefix="http://x", prioritize_verb="rate", weight=1)
    engine = default_engine(extenders=Extenders([extender], max_consultations=2))
    engine.handle([*_nodes(3), PendingPodSeen(make_pod("p"))], 0.0)
    (question,) = of_type(ConsultExtenders, engine.schedule(0.0, 1))
    answer = ExtendersAnswered(
        question.pod.uid, question.number, passed=question.node_names, scores={"n0": 5_000}
    )
    engine.handle([answer], 0.0)
    (attempt,) = of_type(AttemptResult, engine.schedule(0.0, 1))
    assert attempt.best is not None
    first, second, _ = attempt.best.scored_nodes()
    assert (first.node, first.scores[-1]) == ("n0", PluginScore("Extender", 1, 5_000, 5_000, 5_000))
    assert second.scores[-1].raw == 0
    assert first.total == sum(each.weighted for each in first.scores)
