"""Pods that a term of pod affinity or anti-affinity matches."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from stowage.api.objects.meta import LabelSelector
from stowage.api.objects.pod import Affinity, PodAffinity
from stowage.state.pods.affinity_terms import AffinityTerm, TermKind, compile_affinity_terms
from tests.support.builders import ZONE, affinity_term, label_selector, weighted

APP = label_selector({"app": "a"})
TEAM = label_selector({"team": "x"})


def compiled(
    namespaces: Sequence[str] = (), namespace_selector: LabelSelector | None = None
) -> AffinityTerm:
    term = affinity_term(ZONE, APP, namespaces=namespaces, namespace_selector=namespace_selector)
    affinity = Affinity(pod_affinity=PodAffinity((term,)))
    return compile_affinity_terms(affinity, "own")[TermKind.REQUIRED_AFFINITY][0]


@pytest.mark.parametrize(
    ("term", "namespace", "namespace_labels", "want"),
    [
        pytest.param(compiled(), "own", {}, True, id="own namespace when none is named"),
        pytest.param(compiled(), "other", {}, False, id="no other namespace then"),
        pytest.param(compiled(["other"]), "own", {}, False, id="not the own one if others are"),
        pytest.param(compiled(["other"]), "other", {}, True, id="named namespace"),
        pytest.param(compiled((), TEAM), "own", {}, False, id="not the own one with a selector"),
        pytest.param(compiled((), TEAM), "b", {"team": "x"}, True, id="selected namespace"),
        pytest.param(compiled(["a"], TEAM), "a", {}, True, id="named or selected"),
        pytest.param(compiled((), label_selector()), "z", {}, True, id="empty selector means all"),
    ],
)
def test_namespaces_are_named_or_selected(
    term: AffinityTerm, namespace: str, namespace_labels: dict[str, str], want: bool
) -> None:
    assert term.matches(namespace, {"app": "a"}, namespace_labels) is want
    assert not term.matches(namespace, {"app": "b"}, namespace_labels)


def test_a_term_without_a_selector_matches_no_pod() -> None:
    affinity = Affinity(pod_affinity=PodAffinity((affinity_term(ZONE),)))
    term = compile_affinity_terms(affinity, "own")[TermKind.REQUIRED_AFFINITY][0]
    assert not term.matches("own", {"app": "a"}, {})


def test_terms_are_kept_by_kind_with_their_weights() -> None:
    rules = PodAffinity((affinity_term(ZONE, APP),), (weighted(5, affinity_term(ZONE, APP)),))
    terms = compile_affinity_terms(Affinity(None, rules, rules), "own")
    assert [len(terms[kind]) for kind in TermKind] == [1, 1, 1, 1]
    assert terms[TermKind.REQUIRED_AFFINITY][0].weight == 0
    assert terms[TermKind.PREFERRED_ANTI_AFFINITY][0].weight == 5
