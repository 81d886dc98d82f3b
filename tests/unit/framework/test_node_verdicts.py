"""Which plugins count for a rejected node: the first one, or all of them."""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stowage.api.status import Code, error
from stowage.framework import FilterVerdict, Rejection
from stowage.framework.node_verdicts import NodeVerdicts, PluginVerdict
from stowage.framework.verdict import FilterErrors
from tests.support.builders import make_node
from tests.support.mirrored_cluster import MirroredCluster

#: Per plugin, the nodes that it rejects, with whether preemption cannot help there.
Answers: TypeAlias = list[dict[int, bool]]
NUM_NODES = 4


def _verdicts(answers: Answers, *, counts_all: bool) -> NodeVerdicts:
    cluster = MirroredCluster([make_node(f"n{index}") for index in range(NUM_NODES)])
    view = cluster.snapshot().view(slice(0, NUM_NODES))
    verdicts = [
        PluginVerdict(f"P{number}", FilterVerdict((_rejection(number, rejected),)))
        for number, rejected in enumerate(answers)
    ]
    return NodeVerdicts(view, verdicts, counts_all)


def _rejection(number: int, rejected: dict[int, bool]) -> Rejection:
    nodes = range(NUM_NODES)
    return Rejection(
        f"reason {number}",
        np.array([node in rejected for node in nodes], dtype=np.bool_),
        np.array([rejected.get(node, False) for node in nodes], dtype=np.bool_),
    )


def _counting(answers: Answers, node: int, *, counts_all: bool) -> list[int]:
    """The scalar twin: the plugins that count for one node, in order."""
    rejecting = [number for number, rejected in enumerate(answers) if node in rejected]
    return rejecting if counts_all else rejecting[:1]


@given(
    st.lists(st.dictionaries(st.integers(0, NUM_NODES - 1), st.booleans()), max_size=4),
    st.booleans(),
)
def test_counts_and_statuses_equal_the_scalar_twin(answers: Answers, counts_all: bool) -> None:
    verdicts = _verdicts(answers, counts_all=counts_all)
    counts, plugins = verdicts.count_reasons(verdicts.view.exists)
    by_node = {node: _counting(answers, node, counts_all=counts_all) for node in range(NUM_NODES)}
    numbers = [number for counting in by_node.values() for number in counting]
    assert counts == Counter(f"reason {number}" for number in numbers)
    assert plugins == {f"P{number}" for number in numbers}
    for node, counting in by_node.items():
        final = any(answers[number][node] for number in counting)
        assert verdicts.status(node).reasons == tuple(f"reason {each}" for each in counting)
        assert verdicts.resolvable()[node] == (bool(counting) and not final)


@pytest.mark.parametrize(
    ("counts_all", "reasons", "code"),
    [
        (False, ("reason 0",), Code.UNSCHEDULABLE),
        (True, ("reason 0", "reason 1"), Code.UNSCHEDULABLE_AND_UNRESOLVABLE),
    ],
)
def test_preemption_does_not_help_where_any_counted_plugin_says_so(
    counts_all: bool, reasons: tuple[str, ...], code: Code
) -> None:
    verdicts = _verdicts([{2: False}, {2: True}], counts_all=counts_all)
    status = verdicts.status(2)
    assert (status.reasons, status.code, status.plugin) == (reasons, code, "P0")
    assert bool(verdicts.resolvable()[2]) is not counts_all


def _failing(plugin: str, *nodes: int) -> PluginVerdict:
    mask = np.array([node in nodes for node in range(NUM_NODES)], dtype=np.bool_)
    errors = FilterErrors(mask, lambda position: f"{plugin} fails on n{position}")
    return PluginVerdict(plugin, FilterVerdict(errors=errors))


@pytest.mark.parametrize("turned", [False, True], ids=["in order", "in reverse"])
def test_of_the_plugins_that_fail_the_one_of_the_first_node_is_named(turned: bool) -> None:
    view = _verdicts([], counts_all=False).view
    failing = [_failing("P", 2, 3), _failing("Q", 1)]
    verdicts = NodeVerdicts(view, failing[::-1] if turned else failing, False)
    assert verdicts.first_error() == ("Q", "Q fails on n1")
    assert verdicts.status(1) == error("Q fails on n1", plugin="Q")
