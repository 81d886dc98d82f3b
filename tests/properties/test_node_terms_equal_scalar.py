"""Few and many terms of a node affinity match, and weigh, as they do node by node."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from stowage.api.objects.node import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from stowage.api.objects.pod import PreferredSchedulingTerm
from stowage.api.values.node_affinity import (
    compile_node_selector,
    compile_preferred_terms,
)
from stowage.state import ClusterCache
from stowage.state.nodes.node_matching import node_terms_mask, preferred_terms_weights
from tests.support.builders import make_node

VALUES = ["", "1", "2", "30"]


def _requirement(key: str, operator: str, values: list[str]) -> NodeSelectorRequirement:
    return NodeSelectorRequirement(key, operator, tuple(values))


keys = st.sampled_from(["disk", "zone", "none"])
label_requirements = st.one_of(
    st.builds(
        _requirement,
        keys,
        st.sampled_from(["In", "NotIn"]),
        st.lists(st.sampled_from(VALUES), min_size=1, max_size=3),
    ),
    st.builds(_requirement, keys, st.sampled_from(["Exists", "DoesNotExist"]), st.just([])),
    st.builds(
        _requirement,
        keys,
        st.sampled_from(["Gt", "Lt"]),
        st.sampled_from([["0"], ["1"], ["2"], ["29"], ["30"]]),
    ),
)
field_requirements = st.builds(
    _requirement,
    st.sampled_from(["metadata.name", "metadata.name", "spec.other"]),
    st.sampled_from(["In", "NotIn"]),
    st.sampled_from([["n0"], ["n1"], ["n3"], ["gone"], [""]]),
)
terms = st.one_of(
    st.builds(lambda only: NodeSelectorTerm((only,), ()), label_requirements),
    st.builds(lambda only: NodeSelectorTerm((), (only,)), field_requirements),
    st.builds(
        lambda labels, fields: NodeSelectorTerm(tuple(labels), tuple(fields)),
        st.lists(label_requirements, max_size=5),
        st.lists(field_requirements, max_size=2),
    ),
)
labels = st.dictionaries(st.sampled_from(["disk", "zone"]), st.sampled_from(VALUES))


@settings(max_examples=100, deadline=None)
@given(
    st.lists(labels, min_size=1, max_size=4),
    st.lists(terms, min_size=1, max_size=5),
    st.sampled_from([1, 20]),
)
def test_terms_equal_their_scalar_twins(
    of_nodes: list[dict[str, str]], some: list[NodeSelectorTerm], times: int
) -> None:
    cache = ClusterCache()
    nodes = [make_node(f"n{index}", labels=each) for index, each in enumerate(of_nodes)]
    for node in (*nodes, make_node("gone")):
        cache.update_node(node)
    cache.remove_node("gone")
    snapshot = cache.snapshot()
    view = snapshot.view(slice(0, len(nodes)))

    required = compile_node_selector(NodeSelector(tuple(some * times)))
    mask = node_terms_mask(view, required).tolist()
    about = [(node.metadata.labels, node.metadata.name) for node in nodes]
    assert mask == [any(term.matches(*each) for term in required.terms) for each in about]

    preferred = compile_preferred_terms(
        PreferredSchedulingTerm(weight, term) for weight, term in enumerate(some * times, start=-1)
    )
    weights = preferred_terms_weights(view, preferred).tolist()
    assert weights == [
        sum(term.weight for term in preferred if term.term.matches(*each)) for each in about
    ]
