"""Results of CEL expressions are kept by the signature of devices, up to a limit."""

from __future__ import annotations

import pytest

from stowage.cel import Selector
from stowage.state.devices.device_info import compile_slice
from stowage.state.devices.expressions import Expressions
from tests.support.device_builders import device, make_slice

MODEL = 'device.attributes["gpu.example.com"].model'
IS_OLD, IS_NEW = f'{MODEL} == "old"', f'{MODEL} == "new"'


def test_results_are_kept_up_to_a_limit_over_all_expressions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listed = [device("a", model="old"), device("b", model="new"), device("c", model="newer")]
    old, new, newer = (each.signature for each in compile_slice(make_slice("n0", listed)).devices)
    evaluated = []
    matches = Selector.matches

    def counted(selector: Selector, published: object) -> bool:
        evaluated.append(selector.expression)
        return matches(selector, published)  # type: ignore[arg-type]

    monkeypatch.setattr(Selector, "matches", counted)
    expressions = Expressions(10, max_results=3)
    for _ in range(2):
        assert expressions.results(IS_OLD, [old, new]) == [True, False]
        assert expressions.result(IS_NEW, new) is True
    assert evaluated == [IS_OLD, IS_OLD, IS_NEW]
    assert expressions.result(IS_NEW, newer) is False
    assert expressions.results(IS_OLD, [old, new]) == [True, False]
    assert evaluated[3:] == [IS_NEW, IS_OLD, IS_OLD]
