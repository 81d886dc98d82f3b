"""Sparse columns and dense arrays give the same counts."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from stowage.api.objects.meta import ObjectMeta
from stowage.api.objects.namespace import Namespace
from stowage.api.values.selectors import Operator, Requirement, Selector
from stowage.state.namespaces import Namespaces
from stowage.state.nodes.host_ports import HostPorts
from stowage.state.nodes.label_columns import LabelColumn, LabelColumns
from stowage.state.pods.pod_counts import DomainTracking
from stowage.state.pods.term_counts import TermCounts

NUM_ROWS = 1024
PORT = ("0.0.0.0", "TCP", 80)


@pytest.mark.parametrize("num_rows_used", [1, 10, 300])
def test_counts_of_pods_with_a_term_are_equal(num_rows_used: int) -> None:
    zones = {row: {"zone": f"z{row % 7}"} for row in range(0, NUM_ROWS, 2)}
    labels = LabelColumns(lambda row: zones.get(row, {}), NUM_ROWS, keeps_unused=True)
    for row, each in zones.items():
        labels.update(row, {}, each)
    counts = TermCounts(labels, lambda: NUM_ROWS, DomainTracking(labels))
    rng, want = Random(3), np.zeros(NUM_ROWS, dtype=np.int64)
    for step in range(num_rows_used * 4):
        row = rng.randrange(num_rows_used)
        delta = -1 if want[row] and step % 3 == 0 else 1
        counts.add(row, delta)
        want[row] += delta
    assert counts.per_node.tolist() == want.tolist()
    assert counts.total == want.sum()
    column = labels.column("zone")
    per_zone = [int(want[column.codes == code].sum()) for code in range(column.num_values)]
    assert counts.per_domain("zone").tolist() == per_zone
    assert (counts.few is None) == (num_rows_used > NUM_ROWS // 64)
    changed = counts.with_changes([(0, 2), (5, 1)])
    assert changed.total == counts.total + 3
    assert counts.total == want.sum()


@pytest.mark.parametrize("num_rows_used", [1, 10, 300])
def test_collisions_of_host_ports_are_equal(num_rows_used: int) -> None:
    ports = HostPorts(NUM_ROWS)
    for row in range(num_rows_used):
        ports.add(row, [PORT])
    twin = ports.copy()
    twin.remove(0, [PORT])
    everywhere = slice(None)
    assert ports.in_conflict([PORT], everywhere).sum() == num_rows_used
    assert twin.in_conflict([("10.0.0.1", "TCP", 80)], everywhere).sum() == num_rows_used - 1
    assert ports.on_row(0) == {PORT: 1}
    assert twin.on_row(0) == {}
    ports.grow(2 * NUM_ROWS)
    assert ports.in_conflict([PORT], everywhere).sum() == num_rows_used
    assert not ports.in_conflict([("0.0.0.0", "UDP", 80)], everywhere).any()


@pytest.mark.parametrize("operator", [Operator.GT, Operator.LT])
def test_comparing_many_values_equals_comparing_each(operator: Operator) -> None:
    texts = ["7", "+8", "-3", "007", "seven", "", "9" * 30, str(2**63 - 1), str(-(2**63)), "8.0"]
    column = LabelColumn("size", len(texts) + 1)
    for row, text in enumerate(texts):
        column.set(row, text)
    for bound in ("7", "-4", "0", str(2**63 - 1), str(2**63), "x"):
        requirement = Requirement("size", operator, (bound,))
        want = [requirement.matches_value(text) for text in texts]
        table = column.table(requirement)
        assert table[column.codes[: len(texts)]].tolist() == want
        assert not table[-1]


def test_matching_many_namespaces_equals_matching_each() -> None:
    namespaces, rng = Namespaces(), Random(5)
    known: dict[str, dict[str, str]] = {}
    for _ in range(400):
        name = f"ns{rng.randrange(120)}"
        if name in known and rng.random() < 0.4:
            namespaces.remove(name)
            del known[name]
        else:
            known[name] = {"team": f"t{rng.randrange(4)}"} if rng.random() < 0.8 else {}
            namespaces.update(Namespace(ObjectMeta(name=name, labels=known[name])))
        for requirement in (
            Requirement("team", Operator.IN, ("t1", "t2")),
            Requirement("team", Operator.NOT_IN, ("t1",)),
            Requirement("team", Operator.DOES_NOT_EXIST),
        ):
            selector = Selector((requirement,))
            want = {each for each, labels in known.items() if selector.matches(labels)}
            assert namespaces.matching(selector) == want


def test_thousands_of_values_are_found_in_order() -> None:
    values = tuple(sorted(f"v{number}" for number in range(5_000)))
    inside, outside = (Requirement("k", each, values) for each in (Operator.IN, Operator.NOT_IN))
    for value in ("v0", "v4999", "v5000", "a", "z", ""):
        assert inside.matches_value(value) == (value in values)
        assert outside.matches_value(value) == (value not in values)
    assert not inside.matches_value(None)


def test_keys_that_no_row_has_share_one_column() -> None:
    labels = LabelColumns(lambda _row: {}, NUM_ROWS, keeps_unused=True)
    assert labels.column("one") is labels.column("other")
    assert not labels.built()
