"""The disruption budgets that cover a pod, and what evictions leave of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stowage.api.objects.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta
from stowage.api.objects.policy import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
)
from stowage.api.values.selectors import compile_label_selector
from stowage.state import PodClasses, make_pod_info
from stowage.state.pods.disruption_budgets import DisruptionBudgets
from tests.support.builders import label_selector, make_pod

POD = make_pod_info(make_pod("p", labels={"app": "a"}), PodClasses())


def _budget(
    name: str, app: str | None, allowed: int = 0, version: str = "1", namespace: str = "default"
) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        ObjectMeta(name=name, namespace=namespace, resource_version=version),
        PodDisruptionBudgetSpec(label_selector({"app": app} if app else None)),
        PodDisruptionBudgetStatus(allowed),
    )


def _allowed(budgets: DisruptionBudgets) -> list[int]:
    return [budget.allowed for budget in budgets.covering(POD.pod_class)]


def test_the_budgets_that_cover_a_pod_follow_their_updates() -> None:
    budgets = DisruptionBudgets()
    assert _allowed(budgets) == []
    budgets.update(_budget("elsewhere", "a", 9, namespace="other"))
    budgets.update(_budget("everything", None, 9))
    assert _allowed(budgets) == []
    budgets.update(_budget("one", "a", 1))
    assert _allowed(budgets) == [1]
    budgets.update(_budget("two", "a", 2))
    assert _allowed(budgets) == [1, 2]
    budgets.update(_budget("one", "b", 1))
    assert _allowed(budgets) == [2]
    assert budgets.remove("default", "two")
    assert not budgets.remove("default", "two")
    assert _allowed(budgets) == []


def test_an_eviction_uses_up_a_disruption_until_the_budget_is_updated() -> None:
    budgets = DisruptionBudgets()
    budgets.update(_budget("one", "a", 2))
    (budget,) = budgets.covering(POD.pod_class)
    budgets.note_eviction(POD)
    budgets.note_eviction(POD)
    assert budget.left == 1
    budgets.forget_eviction(POD)
    assert budget.left == 2
    budgets.note_eviction(POD)
    budgets.update(_budget("one", "a", 1))
    assert budget.left == 0
    budgets.update(_budget("one", "a", 1, version="2"))
    assert budget.left == 1


def _selecting(name: str, selector: LabelSelector) -> PodDisruptionBudget:
    spec = PodDisruptionBudgetSpec(selector)
    return PodDisruptionBudget(ObjectMeta(name=name, namespace="default"), spec)


@given(
    st.lists(
        st.lists(
            st.tuples(
                st.sampled_from(["app", "tier"]),
                st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
                st.lists(st.sampled_from("abc"), min_size=1, max_size=2),
            ),
            max_size=2,
        ),
        max_size=6,
    ),
    st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from("abc")),
    st.sets(st.integers(0, 5)),
)
def test_a_pod_has_the_budgets_whose_selectors_match(
    selectors: list[list[tuple[str, str, list[str]]]], labels: dict[str, str], removed: set[int]
) -> None:
    budgets, want = DisruptionBudgets(), []
    for index, expressions in enumerate(selectors):
        selector = LabelSelector(
            match_expressions=tuple(
                LabelSelectorRequirement(
                    key, operator, tuple(values) if operator in ("In", "NotIn") else ()
                )
                for key, operator, values in expressions
            )
        )
        budgets.update(_selecting(str(index), _ANY_SELECTOR))
        budgets.update(_selecting(str(index), selector))
        if index in removed:
            budgets.remove("default", str(index))
        elif expressions and labels and compile_label_selector(selector).matches(labels):
            want.append(budgets.by_namespace["default"][str(index)])
    pod = make_pod_info(make_pod("p", labels=labels), PodClasses())
    found = budgets.covering(pod.pod_class)
    assert set(found) == set(want)
    assert len(found) == len(want)


_ANY_SELECTOR = LabelSelector(match_labels={"app": "a"})
