"""Attempts become the records that users read."""

from __future__ import annotations

import msgspec

from stowage.operator.decisions.records import DecisionIds
from tests.support.decisions import attempt, recorded, refused

IDS = DecisionIds("0a")


def test_a_record_has_the_scores_of_the_best_nodes_by_plugin() -> None:
    result = attempt(3, configuration="c1", duration_s=0.002, evaluated_nodes=5, feasible_nodes=2)

    decision = IDS.decision(recorded(result, 1.5))

    assert msgspec.json.decode(msgspec.json.encode(decision)) == {
        "id": "0a-3",
        "time": "2027-01-15T08:00:01.500000Z",
        "pod": "default/p",
        "uid": "uid-p",
        "schedulerName": "stowage",
        "attempt": 1,
        "result": "scheduled",
        "node": "n1",
        "evaluatedNodes": 5,
        "feasibleNodes": 2,
        "nodes": [
            {
                "node": "n1",
                "total": 110,
                "scores": [
                    {"plugin": "Fit", "weight": 1, "raw": 50, "normalized": 50, "weighted": 50},
                    {"plugin": "Taints", "weight": 2, "raw": 7, "normalized": 30, "weighted": 60},
                ],
            },
            {
                "node": "n2",
                "total": 60,
                "scores": [
                    {"plugin": "Fit", "weight": 1, "raw": 20, "normalized": 20, "weighted": 20},
                    {"plugin": "Taints", "weight": 2, "raw": 1, "normalized": 20, "weighted": 40},
                ],
            },
        ],
        "durationS": 0.002,
        "configuration": "c1",
    }


def test_a_record_of_a_refusal_has_the_counts_by_reason() -> None:
    decision = IDS.decision(recorded(refused(4, nominated_node_name="n9")))

    assert decision.reason_counts == {"Insufficient cpu": 5}
    assert decision.unschedulable_plugins == ("NodeResourcesFit",)
    assert (decision.node, decision.nominated_node, decision.nodes) == ("", "n9", ())
    assert decision.message == "0/5 nodes are available: 5 Insufficient cpu."


def test_the_ids_of_a_later_start_sort_after_those_of_an_earlier_one() -> None:
    first, second = DecisionIds.starting_at(10**9), DecisionIds.starting_at(1_800 * 10**15)

    assert first.id_of(9) < second.id_of(1)


def test_an_id_of_another_process_has_no_number() -> None:
    assert IDS.number_of(IDS.id_of(12)) == 12
    assert IDS.number_of(IDS.id_of(10**18 - 1)) == 10**18 - 1
    for other in ("0b-12", "", "12", "0a-", "0a-x", "0a-²", f"0a-{10**18}", f"0a-{'9' * 5000}"):
        assert IDS.number_of(other) == 0
