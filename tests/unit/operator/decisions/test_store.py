"""The last decisions are kept in bounded memory, and found by pod, node and result."""

from __future__ import annotations

import tracemalloc
from sys import getsizeof
from typing import Any

import pytest
from msgspec.structs import replace

from stowage.api.decisions import BestNodes, DecisionQuery, InvalidDecisionQuery
from stowage.api.instructions import AttemptResult
from stowage.operator.decisions.records import DecisionIds
from stowage.operator.decisions.store import MAX_BYTES, MAX_DECISIONS, DecisionStore, size_of
from tests.support.decisions import attempt, recorded, refused

IDS = DecisionIds("0a")
REASONS = {"Insufficient cpu": 5}
#: The attempts of a profile share them.
WEIGHTS = tuple((f"Plugin{number}", 1) for number in range(12))


def _store(num: int, **limits: int) -> DecisionStore:
    store = DecisionStore(IDS, **limits)
    for number in range(1, num + 1):
        store.add(recorded(attempt(number)))
    return store


def _found(store: DecisionStore, **query: str) -> tuple[list[int], str]:
    found, last = store.find(DecisionQuery.of(query))
    return [each.attempt.decision for each in found], last


def test_the_oldest_decision_is_dropped_when_there_are_too_many() -> None:
    assert _found(_store(5, max_decisions=3)) == ([3, 4, 5], "0a-5")


def test_a_query_returns_the_newest_decisions_oldest_first() -> None:
    assert _found(_store(5), limit="2") == ([4, 5], "0a-5")


def test_a_query_after_a_decision_returns_the_next_ones_and_where_to_continue() -> None:
    store = _store(5)
    assert _found(store, after="0a-1", limit="2") == ([2, 3], "0a-3")
    assert _found(store, after="0a-3", limit="2") == ([4, 5], "0a-5")
    assert _found(store, after="0a-5", limit="2") == ([], "0a-5")


def test_a_query_after_a_decision_of_an_earlier_process_returns_all() -> None:
    assert _found(_store(3), after="09-77") == ([1, 2, 3], "0a-3")


def test_who_follows_from_the_start_misses_no_decision() -> None:
    store = _store(0)
    _, last = _found(store)
    for number in range(1, 4):
        store.add(recorded(attempt(number)))
    assert _found(store, after=last, limit="2") == ([1, 2], "0a-2")


def test_decisions_that_the_filter_leaves_out_are_not_looked_at_again() -> None:
    assert _found(_store(5), after="0a-1", result="error") == ([], "0a-5")


@pytest.mark.parametrize(
    ("query", "want"),
    [
        ({"namespace": "a"}, [1, 3]),
        ({"pod": "p"}, [1, 2]),
        ({"pod": "b/p"}, [2]),
        ({"node": "n1"}, [1]),
        ({"node": "n7"}, [3]),
        ({"result": "unschedulable"}, [2, 3]),
        ({"namespace": "a", "result": "unschedulable"}, [3]),
        ({"node": "n"}, []),
    ],
)
def test_decisions_are_filtered(query: dict[str, str], want: list[int]) -> None:
    store = DecisionStore(IDS)
    for result in (
        attempt(1, "a/p"),
        refused(2, "b/p"),
        refused(3, "a/q", nominated_node_name="n7"),
    ):
        store.add(recorded(result))
    assert _found(store, **query)[0] == want


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"limit": "0"}, "limit: expected 1 to 1000, got '0'"),
        ({"limit": "1001"}, "limit: expected 1 to 1000, got '1001'"),
        ({"limit": "x"}, "limit: expected 1 to 1000, got 'x'"),
        ({"limit": "²"}, "limit: expected 1 to 1000, got '²'"),
        ({"result": "bound"}, "result: expected scheduled, unschedulable, error, got 'bound'"),
        ({"uid": "u"}, "uid: unknown parameter, expected namespace, pod, node, result, limit, "),
    ],
)
def test_an_invalid_query_names_the_parameter(query: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidDecisionQuery) as invalid:
        DecisionQuery.of(query)
    assert str(invalid.value).startswith(message)


def test_big_decisions_stay_within_the_memory_bound() -> None:
    """Each has long names of its own, twelve plugins with large scores, and a long message."""
    tracemalloc.start()
    try:
        store = DecisionStore(IDS)
        before = tracemalloc.get_traced_memory()[0]
        for number in range(1, 6_001):
            store.add(recorded(_big_attempt(number)))
        used = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert 0.5 * MAX_BYTES < used <= MAX_BYTES
    assert store.num_bytes <= MAX_BYTES
    assert len(store) < 6_000


def test_decisions_are_dropped_only_beyond_the_memory_bound() -> None:
    size = size_of(attempt(1))
    assert len(_store(3, max_bytes=3 * size)) == 3
    assert len(_store(3, max_bytes=3 * size - 1)) == 2


@pytest.mark.parametrize(
    ("part", "num_bytes"),
    [
        ({"message": "0/5 nodes are available"}, len("0/5 nodes are available")),
        ({"reason_counts": REASONS}, getsizeof(REASONS) + getsizeof("Insufficient cpu")),
        ({"unschedulable_plugins": ("NodeResourcesFit",)}, getsizeof("NodeResourcesFit")),
        ({"best": BestNodes(("n1",), (600,), (), ("Fit",), bytes(1), {})}, getsizeof("n1")),
    ],
    ids=["message", "reasons", "plugins", "nodes"],
)
def test_each_part_of_a_decision_takes_its_memory(part: dict[str, Any], num_bytes: int) -> None:
    bare = replace(attempt(1), message="", reason_counts={}, unschedulable_plugins=(), best=None)
    assert size_of(replace(bare, **part)) >= size_of(bare) + num_bytes


def test_usual_decisions_are_all_kept() -> None:
    """10,000 decisions with ten nodes and six plugins need less than the bound."""
    names = tuple(f"ip-10-0-0-{index}.eu-central-1.compute.internal" for index in range(10))
    scores = ((1, 2, 3, 4, 5, 6, 7, 8, 9, 10),) * 2
    best = BestNodes(names, (600,) * 10, (), ("Fit",), bytes(10), {"Spread": scores})
    assert size_of(attempt(1, best=best)) * MAX_DECISIONS < MAX_BYTES


def test_one_decision_beyond_the_bound_is_not_kept() -> None:
    store = _store(2, max_bytes=10_000)
    store.add(recorded(refused(3, message="x" * 10_000)))
    assert (len(store), store.num_bytes) == (0, 0)


def _big_attempt(number: int) -> AttemptResult:
    others = {
        plugin: (
            tuple(10**6 * number + node for node in range(10)),
            tuple(10**7 * number + node for node in range(10)),
        )
        for plugin, _ in WEIGHTS
    }
    names = tuple(f"{number:06}-{node:02}-{'n' * 240}" for node in range(10))
    totals = tuple(10**8 * number + node for node in range(10))
    best = BestNodes(names, totals, WEIGHTS, (), b"", others)
    reasons = {f"{number} reason {index} {'r' * 50}": index + 1000 for index in range(10)}
    return attempt(
        number,
        f"namespace-{number}/pod-{number}-{'p' * 200}",
        message=f"{number} " + "m" * 1_000,
        best=best,
        reason_counts=reasons,
    )
