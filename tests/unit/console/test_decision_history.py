"""The last decisions are kept, found by filters, and counted."""

from __future__ import annotations

from stowage.api.decisions import DecisionQuery
from stowage.console.decisions.history import SERVER, DecisionHistory
from tests.support.consoles import START_S, decision


def history_of(*numbers: int, max_decisions: int = 100) -> DecisionHistory:
    history = DecisionHistory(SERVER, max_decisions=max_decisions)
    for number in numbers:
        history.add(decision(number, number, pod=f"default/p{number}", node_name=f"n{number % 2}"))
    return history


def ids(history: DecisionHistory, before: str = "", **query: object) -> list[str]:
    wanted = DecisionQuery(**query)  # type: ignore[arg-type]
    return [each.id for each in history.answer(wanted, before, 1).decisions]


def test_the_newest_decisions_come_first() -> None:
    answer = history_of(1, 2, 3).answer(DecisionQuery(limit=2), "", 9)
    assert [each.id for each in answer.decisions] == ["d-3", "d-2"]
    assert (answer.more, answer.last, answer.version) == (True, "d-3", 9)


def test_a_page_goes_on_before_the_last_one() -> None:
    history = history_of(1, 2, 3, 4)
    assert ids(history, "d-3", limit=1) == ["d-2"]
    assert ids(history, "d-2") == ["d-1"]
    assert ids(history, "d-1") == []
    assert ids(history, "unknown") == []


def test_filters_choose_decisions() -> None:
    history = history_of(1, 2, 3, 4)
    assert ids(history, node="n1") == ["d-3", "d-1"]
    assert ids(history, pod="default/p2") == ["d-2"]
    assert ids(history, "d-3", node="n1") == ["d-1"]
    assert ids(history, result="error") == []


def test_a_row_has_the_winner_and_the_runner_up() -> None:
    history = DecisionHistory(SERVER)
    row = history.add(decision(1))
    assert (row.total, row.runner_up, row.behind) == (110, "n2", 50)
    assert row.exact


def test_the_record_of_a_decision_is_found_by_its_id() -> None:
    history = history_of(1, 2)
    found = history.find("d-1")
    assert found is not None
    assert found[1] == decision(1, 1, pod="default/p1", node_name="n1")
    assert history.find("d-3") is None


def test_old_decisions_are_dropped_but_counted() -> None:
    history = history_of(*range(1, 21), max_decisions=5)
    assert ids(history) == ["d-20", "d-19", "d-18", "d-17", "d-16"]
    assert history.find("d-1") is None
    assert history.stats(START_S + 20, 1).total["scheduled"] == 20


def test_the_history_up_to_a_time_has_no_later_decisions() -> None:
    before = history_of(1, 2, 3).until(START_S + 2, 1.0)
    assert ids(before) == ["d-2", "d-1"]
    assert before.stats(START_S + 2, 1).total["scheduled"] == 2
