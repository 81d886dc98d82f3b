"""Node selectors match nodes; invalid terms are an error only if no term matches."""

from typing import Any

import pytest

from stowage.api.decoding.decode import convert_object
from stowage.api.decoding.errors import SelectorError
from stowage.api.objects.node import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from stowage.api.objects.pod import Pod, PreferredSchedulingTerm
from stowage.api.values.node_affinity import (
    NodeTerms,
    compile_node_selector,
    compile_preferred_terms,
    required_node_affinity,
)

SSD = NodeSelectorTerm((NodeSelectorRequirement("disk", "In", ("ssd",)),))
FAULTY = NodeSelectorTerm((NodeSelectorRequirement("disk", "Foo"),))
NAMED_N1 = NodeSelectorTerm(
    match_fields=(NodeSelectorRequirement("metadata.name", "In", ("n1",)),),
)


def compiled(*terms: NodeSelectorTerm) -> NodeTerms:
    return compile_node_selector(NodeSelector(terms))


def test_one_matching_term_suffices_and_an_empty_term_matches_no_node() -> None:
    assert compiled(NAMED_N1, SSD).matches({"disk": "ssd"}, "n2")
    assert compiled(NAMED_N1).matches({}, "n1")
    assert not compiled(NodeSelectorTerm()).matches({"disk": "ssd"}, "n1")
    assert not compiled().matches({}, "n1")


def test_an_invalid_term_is_an_error_only_if_no_other_term_matches() -> None:
    assert compiled(FAULTY, SSD).matches({"disk": "ssd"}, "n1")
    with pytest.raises(SelectorError, match=r"nodeSelectorTerms\[0\].*Unsupported value: \"Foo\""):
        compiled(FAULTY, SSD).matches({}, "n1")


def test_a_comparison_with_two_equal_values_is_invalid() -> None:
    """``labels.NewRequirement`` counts the values before it removes duplicates."""
    twice = NodeSelectorTerm((NodeSelectorRequirement("gen", "Gt", ("5", "5")),))
    assert "exactly one value is required" in compiled(twice).error


def test_fields_other_than_the_name_count_as_empty() -> None:
    other = NodeSelectorTerm(match_fields=(NodeSelectorRequirement("metadata.x", "NotIn", ("a",)),))
    assert compiled(other).matches({}, "n1")


@pytest.mark.parametrize(
    ("operator", "values", "complaint"),
    [("Exists", (), 'supported values: "In", "NotIn"'), ("In", ("a", "b"), "one element")],
)
def test_match_fields_allow_only_in_and_not_in_with_one_value(
    operator: str, values: tuple[str, ...], complaint: str
) -> None:
    requirement = NodeSelectorRequirement("metadata.name", operator, values)
    terms = compiled(NodeSelectorTerm(match_fields=(requirement,)))
    assert complaint in terms.error


def pod_spec(**spec: Any) -> Pod:
    return convert_object(Pod, {"metadata": {"name": "p"}, "spec": spec})


def test_node_selector_and_required_affinity_must_both_hold() -> None:
    required = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "gen", "operator": "Exists"}]}]}
    pod = pod_spec(
        nodeSelector={"disk": "ssd"},
        affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}},
    )
    affinity = required_node_affinity(pod.spec)
    assert affinity.matches({"disk": "ssd", "gen": "1"}, "n")
    assert not affinity.matches({"disk": "ssd"}, "n")
    assert not affinity.matches({"gen": "1"}, "n")
    assert required_node_affinity(pod_spec().spec).matches({}, "n")


def test_required_affinity_without_terms_matches_no_node() -> None:
    no_terms: dict[str, Any] = {"nodeSelectorTerms": []}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": no_terms}
    pod = pod_spec(affinity={"nodeAffinity": affinity})
    assert not required_node_affinity(pod.spec).matches({}, "n")


def test_preferred_terms_without_weight_or_requirements_are_dropped() -> None:
    terms = compile_preferred_terms(
        [
            PreferredSchedulingTerm(10, SSD),
            PreferredSchedulingTerm(3, NAMED_N1),
            PreferredSchedulingTerm(0, FAULTY),
            PreferredSchedulingTerm(7, NodeSelectorTerm()),
        ]
    )
    assert [(each.weight, each.term.matches({"disk": "ssd"}, "n2")) for each in terms] == [
        (10, True),
        (3, False),
    ]


def test_an_invalid_preferred_term_is_an_error() -> None:
    with pytest.raises(SelectorError, match=r"^\[0\]\.matchExpressions\[0\]\.operator"):
        compile_preferred_terms([PreferredSchedulingTerm(1, FAULTY)])
