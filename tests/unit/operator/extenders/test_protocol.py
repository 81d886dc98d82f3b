"""The extenders' JSON: requests, answers and invalid answers."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from stowage.api.instructions import PodReference
from stowage.operator.extenders.protocol import (
    FilterAnswer,
    InvalidAnswer,
    binding_request,
    decode_binding_error,
    decode_filter_answer,
    decode_scores,
    decode_victims,
    node_names_request,
    nodes_request,
)

POD = b'{"metadata":{"name":"p"},"spec":{"anything":[1,2]}}'


def _sent(question: bytes) -> Any:
    return msgspec.json.decode(question)


def test_an_extender_with_a_node_cache_is_sent_node_names() -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"anything": [1, 2]}}
    assert _sent(node_names_request(POD, ["m", "n"])) == {
        "Pod": pod,
        "Nodes": None,
        "NodeNames": ["m", "n"],
    }


def test_an_extender_without_a_node_cache_is_sent_whole_nodes() -> None:
    question = _sent(nodes_request(POD, [b'{"metadata":{"name":"m"},"new":true}']))
    assert question["Nodes"]["items"] == [{"metadata": {"name": "m"}, "new": True}]
    assert question["NodeNames"] is None


def test_a_binding_request_names_pod_and_node() -> None:
    assert _sent(binding_request(PodReference("ns", "p", "u1"), "n")) == {
        "PodName": "p",
        "PodNamespace": "ns",
        "PodUID": "u1",
        "Node": "n",
    }


@pytest.mark.parametrize(
    ("body", "want"),
    [
        (b"{}", FilterAnswer()),
        (b"null", FilterAnswer()),
        (b'{"NodeNames":["m"]}', FilterAnswer(node_names=["m"])),
        (b'{"nodenames":["m"]}', FilterAnswer(node_names=["m"])),
        (b'{"NodeNames":null,"nodes":{"items":[]}}', FilterAnswer(nodes=[])),
        (b'{"Nodes":{"items":null}}', FilterAnswer(nodes=[])),
        (
            b'{"Nodes":{"items":[{"metadata":{"name":"m","labels":{}},"status":{}}]}}',
            FilterAnswer(nodes=["m"]),
        ),
        (b'{"failedNodes":{"m":"no","n":null}}', FilterAnswer(failed={"m": "no", "n": ""})),
        (
            b'{"FailedAndUnresolvableNodes":{"m":"never"}}',
            FilterAnswer(failed_and_unresolvable={"m": "never"}),
        ),
        (b'{"Error":"out of order"}', FilterAnswer(error="out of order")),
        (b'{"somethingNew":{"x":1}}', FilterAnswer()),
    ],
)
def test_a_filter_answer_is_decoded_as_in_go(body: bytes, want: FilterAnswer) -> None:
    assert decode_filter_answer(body) == want


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "$:  (expected an ExtenderFilterResult; "),
        (b"<html>", "$: <html> (expected an ExtenderFilterResult; "),
        (b'{"NodeNames":"m"}', 'NodeNames: "m" (expected a list of node names)'),
        (b'{"nodes":{"items":[{"metadata":{}}]}}', "(expected a v1.NodeList)"),
        (b'{"FailedNodes":["m"]}', 'FailedNodes: ["m"] (expected a reason by node name)'),
        (b'{"Error":{"code":1}}', 'Error: {"code":1} (expected a text)'),
    ],
)
def test_the_error_for_an_invalid_filter_answer_names_the_field(body: bytes, message: str) -> None:
    with pytest.raises(InvalidAnswer) as error:
        decode_filter_answer(body)
    assert message in str(error.value)


def test_the_error_quotes_only_part_of_a_long_answer() -> None:
    with pytest.raises(InvalidAnswer) as error:
        decode_filter_answer(b"x" * 10_000)
    assert len(str(error.value)) < 300


def test_scores_are_weighted_and_scaled_to_the_range_of_plugin_scores() -> None:
    # 7 of 10 at weight 3: 7 * 3 * (100 / 10).
    assert decode_scores(b'[{"Host":"m","Score":7},{"host":"n","score":0}]', 3) == [
        ("m", 210),
        ("n", 0),
    ]


def test_missing_hosts_and_scores_have_their_zero_values() -> None:
    assert decode_scores(b'[{"Host":"m"},null]', 1) == [("m", 0), ("", 0)]
    assert decode_scores(b"null", 1) == []


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"Host":"m"}', "(expected a HostPriorityList; "),
        (b'[{"Host":1}]', "Host: 1 (expected a node name)"),
        (b'[{"Host":"m","Score":1.5}]', "Score: 1.5 (expected a whole number)"),
        (b'[{"Host":"m","Score":9007199254740993}]', "Score of m: 9007199254740993 (expected 0 to"),
    ],
)
def test_the_error_for_invalid_scores_names_the_field(body: bytes, message: str) -> None:
    with pytest.raises(InvalidAnswer) as error:
        decode_scores(body, 1)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"<html>", "$: <html> (expected an ExtenderPreemptionResult; "),
        (
            b'{"NodeNameToMetaVictims":["m"]}',
            'NodeNameToMetaVictims: ["m"] (expected victims by node name)',
        ),
        (b'{"NodeNameToMetaVictims":{"m":{"Pods":1}}}', "Pods: 1 (expected a list)"),
        (b'{"NodeNameToMetaVictims":{"m":{"Pods":[{"UID":1}]}}}', "UID: 1 (expected a UID)"),
        (
            b'{"NodeNameToMetaVictims":{"m":{"NumPDBViolations":"2"}}}',
            'NumPDBViolations: "2" (expected a whole number)',
        ),
    ],
)
def test_the_error_for_invalid_victims_names_the_field(answer: bytes, message: str) -> None:
    with pytest.raises(InvalidAnswer) as error:
        decode_victims(answer)
    assert message in str(error.value)


def test_missing_victims_and_violations_have_their_zero_values() -> None:
    answer = b'{"NodeNameToMetaVictims":{"m":null,"n":{"Pods":[null,{"uid":"u"}]}}}'
    assert decode_victims(answer) == {"m": ([], 0), "n": (["", "u"], 0)}


def test_a_binding_answer_has_an_error_or_is_empty() -> None:
    assert decode_binding_error(b"{}") == ""
    assert decode_binding_error(b'{"error":"no quota"}') == "no quota"
    with pytest.raises(InvalidAnswer, match="an ExtenderBindingResult"):
        decode_binding_error(b"ok")


def test_weighted_scores_are_whole_numbers() -> None:
    ((_, score),) = decode_scores(b'[{"Host":"m","Score":7}]', 1)
    assert isinstance(score, int)


@pytest.mark.parametrize("score", [2**53 // 10, -(2**53 // 10)])
def test_the_largest_scores_whose_sums_are_exact_are_taken(score: int) -> None:
    assert decode_scores(b'[{"Host":"m","Score":%d}]' % score, 1) == [("m", score * 10)]
    larger = score + (1 if score > 0 else -1)
    with pytest.raises(InvalidAnswer, match=rf"^Score of m: {larger} \(expected 0 to 10\)"):
        decode_scores(b'[{"Host":"m","Score":%d}]' % larger, 1)


@pytest.mark.parametrize(("length", "shown"), [(80, "x" * 80), (81, "x" * 80 + "...")])
def test_an_error_quotes_eighty_characters_of_a_value(length: int, shown: str) -> None:
    assert (
        str(InvalidAnswer("Error", "x" * length, "a text")) == f"Error: {shown} (expected a text)"
    )
