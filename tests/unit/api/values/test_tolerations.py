"""Tolerations tolerate the same taints as in Kubernetes."""

import pytest

from stowage.api.objects.node import Taint
from stowage.api.objects.pod import Toleration
from stowage.api.values.tolerations import (
    first_untolerated_taint,
    tolerates,
)

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


def test_the_first_untolerated_taint_with_a_hard_effect_is_named() -> None:
    soft, hard = Taint("a", "", "PreferNoSchedule"), Taint("b", "", "NoExecute")
    assert first_untolerated_taint([soft, hard, GPU], []) == hard
    assert first_untolerated_taint([soft, hard, GPU], [Toleration("b", "Exists")]) == GPU
    assert first_untolerated_taint([soft], []) is None
