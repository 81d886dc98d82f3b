"""Evaluation of a pod by several extenders, and their combined answer."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from stowage.api.config.loading import Extender
from stowage.api.events import ExtendersAnswered
from stowage.api.instructions import ConsultExtenders, PodReference
from stowage.operator.extenders.client import ExtenderError
from stowage.operator.extenders.evaluator import ExtenderEvaluator
from tests.support.fake_extender import FakeExtender, FakeObjects

POD = PodReference("default", "p", "u1")


def _extender(name: str = "x", *, weight: int = 1, ignorable: bool = False) -> Extender:
    return Extender(
        url_prefix=f"http://{name}",
        filter_verb="filter",
        prioritize_verb="rate",
        weight=weight,
        node_cache_capable=True,
        ignorable=ignorable,
    )


def _filter(name: str = "x", *, ignorable: bool = False) -> Extender:
    return Extender(
        url_prefix=f"http://{name}",
        filter_verb="filter",
        node_cache_capable=True,
        ignorable=ignorable,
    )


async def _consult(
    *extenders: FakeExtender, nodes: str = "l m n", gone: tuple[str, ...] = ()
) -> ExtendersAnswered:
    question = ConsultExtenders(POD, 7, tuple(nodes.split()), tuple(range(len(extenders))))
    return await ExtenderEvaluator(extenders, FakeObjects(*gone)).evaluate(question)


def _passing(*names: str, **failed: str) -> dict[str, Any]:
    return {"NodeNames": list(names), "FailedNodes": failed}


async def test_each_extender_gets_the_nodes_that_the_previous_one_passed() -> None:
    first = FakeExtender(_filter("a"), filter=_passing("m", "n", l="no"))
    second = FakeExtender(_filter("b"), filter=_passing("n", m="not here"))
    answer = await _consult(first, second)
    assert first.asked("filter")[0]["NodeNames"] == ["l", "m", "n"]
    assert second.asked("filter")[0]["NodeNames"] == ["m", "n"]
    assert answer == ExtendersAnswered("u1", 7, ("n",), {"l": "no", "m": "not here"})


async def test_no_extender_is_called_once_no_node_is_left() -> None:
    first = FakeExtender(_filter("a"), filter=_passing())
    second = FakeExtender(_filter("b"))
    assert (await _consult(first, second)).passed == ()
    assert second.questions == []


async def test_weighted_scores_of_the_remaining_nodes_are_added_up() -> None:
    rating = [{"Host": "m", "Score": 1}, {"Host": "n", "Score": 2}]
    first = FakeExtender(_extender("a"), filter=_passing("m", "n"), rate=rating)
    second = FakeExtender(_extender("b", weight=3), filter=_passing("n", "m"), rate=rating)
    answer = await _consult(first, second)
    # 1 * 1 * 10 + 1 * 3 * 10 and 2 * 1 * 10 + 2 * 3 * 10.
    assert answer.scores == {"m": 40, "n": 80}
    assert first.asked("rate")[0]["NodeNames"] == ["n", "m"]


async def test_a_single_remaining_node_is_not_scored() -> None:
    extender = FakeExtender(_extender(), filter=_passing("n"))
    assert (await _consult(extender)).scores == {}
    assert extender.asked("rate") == []


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (ExtenderError("gone"), "gone"),
        (b"<html>", "$: <html> (expected a HostPriorityList"),
        ({"not": "a list"}, '$: {"not":"a list"} (expected a HostPriorityList'),
    ],
)
async def test_an_extender_that_fails_to_score_is_left_out_and_logged(
    failure: Any, reason: str
) -> None:
    rating = [{"Host": "m", "Score": 1}]
    first = FakeExtender(_extender("a"), filter=_passing("m", "n"), rate=failure)
    second = FakeExtender(_extender("b"), filter=_passing("m", "n"), rate=rating)
    with capture_logs() as logs:
        answer = await _consult(first, second)
    assert (answer.error, answer.scores) == ("", {"m": 10})
    (line,) = logs
    assert (line["event"], line["pod"]) == ("extender gave no scores", "default/p")
    assert reason in line["error"]


async def test_an_extender_that_fails_to_filter_ends_the_evaluation() -> None:
    first = FakeExtender(_filter("a"), filter=ExtenderError('extender "http://a": no answer'))
    second = FakeExtender(_filter("b"))
    answer = await _consult(first, second)
    assert answer == ExtendersAnswered("u1", 7, error='extender "http://a": no answer')
    assert second.questions == []


async def test_an_ignorable_extender_that_fails_to_filter_is_skipped() -> None:
    first = FakeExtender(_filter("a", ignorable=True), filter=ExtenderError("no answer"))
    second = FakeExtender(_filter("b"), filter=_passing("m"))
    answer = await _consult(first, second)
    assert second.asked("filter")[0]["NodeNames"] == ["l", "m", "n"]
    assert (answer.error, answer.passed) == ("", ("m",))


async def test_the_error_for_an_invalid_answer_names_extender_field_and_value() -> None:
    answer = await _consult(FakeExtender(_filter(), filter={"NodeNames": "all"}))
    assert answer.error == (
        'extender "http://x" answered filter with NodeNames: "all" (expected a list of node names)'
    )


async def test_an_error_in_the_answer_is_passed_on_unchanged() -> None:
    answer = await _consult(FakeExtender(_filter(), filter={"Error": "license expired"}))
    assert answer.error == "license expired"


async def test_an_extender_that_passes_an_unknown_node_is_an_error() -> None:
    answer = await _consult(FakeExtender(_filter(), filter=_passing("m", "elsewhere")))
    assert answer.error == (
        'extender "http://x" claims a filtered node "elsewhere" '
        "which is not found in the input node list"
    )


async def test_reasons_and_scores_of_unknown_nodes_are_ignored() -> None:
    rating = [{"Host": "elsewhere", "Score": 9}, {"Host": "m", "Score": 1}]
    extender = FakeExtender(
        _extender(), filter=_passing("m", "n", l="no", elsewhere="no"), rate=rating
    )
    with capture_logs() as lines:
        answer = await _consult(extender)
    assert (answer.failed, answer.scores) == ({"l": "no"}, {"m": 10})
    warning = {
        "event": "extender speaks of nodes it was not asked about",
        "extender": "http://x",
        "nodes": ["elsewhere"],
        "number": 1,
        "log_level": "warning",
    }
    assert lines == [warning, warning]


async def test_unresolvable_takes_precedence_over_failed_in_one_answer() -> None:
    verdicts = {**_passing(l="no", m="no"), "FailedAndUnresolvableNodes": {"m": "never"}}
    answer = await _consult(FakeExtender(_filter(), filter=verdicts))
    assert (answer.failed["l"], answer.failed_and_unresolvable) == ("no", {"m": "never"})


async def test_an_answer_without_a_list_passes_no_node() -> None:
    assert (await _consult(FakeExtender(_filter(), filter={}))).passed == ()


async def test_an_extender_without_a_node_cache_gets_and_returns_whole_nodes() -> None:
    config = Extender(url_prefix="http://x", filter_verb="filter")
    nodes = {"items": [{"metadata": {"name": "m"}}]}
    extender = FakeExtender(config, filter={"Nodes": nodes, "NodeNames": ["n"]})
    answer = await _consult(extender, gone=("l",))
    sent = [node["metadata"]["name"] for node in extender.asked("filter")[0]["Nodes"]["items"]]
    assert (sent, answer.passed) == (["m", "n"], ("m",))


async def test_no_extender_is_called_for_a_deleted_pod() -> None:
    extender = FakeExtender(_filter())
    answer = await _consult(extender, gone=("p",))
    assert (answer.error, extender.questions) == ("pod default/p is gone", [])


async def test_an_ignored_extender_is_logged_with_the_pod_and_the_error() -> None:
    first = FakeExtender(_filter("a", ignorable=True), filter=ExtenderError("no answer"))
    with capture_logs() as logs:
        await _consult(first, FakeExtender(_filter("b"), filter=_passing("m")))
    (line,) = logs
    assert (line["event"], line["pod"]) == ("extender ignored", "default/p")
    assert line["error"] == "no answer"
