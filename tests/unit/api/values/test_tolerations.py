"""Tolerations tolerate the same taints as in Kubernetes."""

import pytest

from stowage.api.objects.node import Taint
from stowage.api.objects.pod import Toleration
from stowage.api.values.tolerations import first_untolerated_taint, tolerated, tolerates

GPU = Taint("gpu", "yes", "NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "want"),
    [
        (Toleration("gpu", "Equal", "yes", "NoSchedule"), True),
        (Toleration("gpu", "", "yes"), True),
        (Toleration("gpu", "Equal", "no"), False),
        (Toleration("gpu", "Exists", "", "NoExecute"), False),
        (Toleration("gpu", "Exists"), True),
        (Toleration("", "Exists"), True),
        (Toleration("cpu", "Exists"), False),
        (Toleration("gpu", "Gt", "yes"), False),
    ],
)
def test_a_toleration_matches_a_taint_by_effect_key_and_value(
    toleration: Toleration, want: bool
) -> None:
    assert tolerates(toleration, GPU) is want


@pytest.mark.parametrize(
    ("operator", "bound", "number", "want"),
    [
        ("Gt", "750", "950", True),
        ("Gt", "950", "800", False),
        ("Gt", "950", "950", False),
        ("Lt", "950", "800", True),
        ("Lt", "800", "950", False),
        ("Lt", "0", "-1", True),
        ("Gt", "-100", "-200", False),
        ("Gt", "9223372036854775806", "9223372036854775807", True),
        ("Lt", "0", "-9223372036854775808", True),
        ("Gt", "0", "9223372036854775808", False),
        ("Gt", "100", "high", False),
        ("Gt", "100", "", False),
        ("Gt", "", "100", False),
        ("Gt", "0100", "200", False),
        ("Gt", "100", "0200", False),
        ("Gt", "+100", "200", False),
        ("Gt", "-0", "200", False),
        ("Gt", "100.5", "200", False),
        ("Gt", "-", "100", False),
        ("Lt", "100", " 50 ", False),
        ("Ge", "100", "200", False),
    ],
)
def test_numbers_are_compared_where_the_gate_is_on(
    operator: str, bound: str, number: str, want: bool
) -> None:
    toleration, taint = Toleration("sla", operator, bound), Taint("sla", number, "NoSchedule")
    assert tolerates(toleration, taint, compares=True) is want
    assert tolerated(taint, [Toleration("x", "Exists"), toleration], compares=True) is want
    assert (first_untolerated_taint([taint], [toleration], compares=True) is None) is want
    assert not tolerates(toleration, taint)
    other = Taint("sla", number, "NoExecute")
    hard = Toleration("sla", operator, bound, "NoSchedule")
    assert not tolerates(hard, other, compares=True)


def test_the_first_untolerated_taint_with_a_hard_effect_is_named() -> None:
    soft, hard = Taint("a", "", "PreferNoSchedule"), Taint("b", "", "NoExecute")
    assert first_untolerated_taint([soft, hard, GPU], []) == hard
    assert first_untolerated_taint([soft, hard, GPU], [Toleration("b", "Exists")]) == GPU
    assert first_untolerated_taint([soft], []) is None
