"""The rows that a slice is for, found for all nodes at once, equal asking node by node."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stowage.api.decoding.errors import SelectorError
from stowage.state import ClusterCache
from stowage.state.devices.device_info import SliceInfo, compile_slice
from stowage.state.devices.slice_rows import rows_using
from stowage.state.nodes.node_columns import NodeColumns
from tests.support.builders import make_node
from tests.support.device_builders import device, make_slice, quantities

NAMES = ["n0", "n1", "gone", "unknown"]
labels = st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from(["1", "2", "x"]))
expressions = st.builds(
    lambda key, operator, values: {
        "key": key,
        "operator": operator,
        "values": [] if operator in ("Exists", "DoesNotExist") else values,
    },
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Wrong"]),
    st.lists(st.sampled_from(["1", "2", "x"]), min_size=1, max_size=2),
)
fields = st.builds(
    lambda key, operator, name: {"key": key, "operator": operator, "values": [name]},
    st.sampled_from(["metadata.name", "metadata.name", "other"]),
    st.sampled_from(["In", "NotIn", "Exists"]),
    st.sampled_from(NAMES),
)
terms = st.fixed_dictionaries(
    {
        "matchExpressions": st.lists(expressions, max_size=2),
        "matchFields": st.lists(fields, max_size=2),
    }
)
conditions = st.one_of(
    st.just({"allNodes": True}),
    st.builds(
        lambda found: {"nodeSelector": {"nodeSelectorTerms": found}}, st.lists(terms, max_size=2)
    ),
)
names = st.sampled_from(NAMES).map(lambda name: {"nodeName": name})
per_device = st.lists(st.one_of(conditions, names, st.just({})), max_size=3).map(
    lambda found: {
        "perDeviceNodeSelection": True,
        "devices": [device(f"d{index}", **each) for index, each in enumerate(found)],
    }
)
counters = st.just(
    {"allNodes": True, "sharedCounters": [{"name": "s", "counters": quantities({"c": "1"})}]}
)


class _OpenCache(ClusterCache):
    @property
    def nodes(self) -> NodeColumns:
        """The columns of nodes."""
        return self._state.columns


def _rows_one_by_one(info: SliceInfo, nodes: NodeColumns) -> list[bool]:
    return [
        node is not None and _is_used(info, node.metadata.name, node.metadata.labels)
        for node in nodes.nodes
    ]


def _is_used(info: SliceInfo, name: str, of_node: dict[str, str]) -> bool:
    try:
        return info.is_relevant(name, of_node)
    except SelectorError:
        return True


@given(st.lists(labels, min_size=1, max_size=4), st.one_of(conditions, per_device, counters))
def test_the_rows_of_a_slice_are_those_that_it_is_relevant_for(
    nodes: list[dict[str, str]], spec: dict[str, Any]
) -> None:
    cache = _OpenCache()
    for index, each in enumerate(nodes):
        cache.update_node(make_node(f"n{index}", labels=each))
    # The slice of a node that does not exist holds a row.
    cache.update_device_object(make_slice("gone", ["x"]))
    info = compile_slice(make_slice("", name="shared", **spec))
    found = rows_using(info, cache.nodes)
    np.testing.assert_array_equal(found, _rows_one_by_one(info, cache.nodes))
