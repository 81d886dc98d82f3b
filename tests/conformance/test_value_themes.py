"""Values, selectors and CEL agree with kube-scheduler on every record."""

import pytest

from tests.conformance.value_themes import VALUE_THEMES, VECTORS, read_rows, run_value_theme


@pytest.mark.parametrize("theme", VALUE_THEMES)
def test_every_recorded_row_agrees(theme: str) -> None:
    rows = read_rows(VECTORS / f"{theme}.jsonl.gz")
    judged = list(run_value_theme(theme, rows))
    assert len(judged) > 300
    assert [str(difference) for difference in judged if difference] == []


def test_a_wrong_record_is_reported_with_its_field() -> None:
    rows = [{"in": "1", "ok": True, "sign": 1, "value": 2}]
    (difference,) = run_value_theme("helper-quantity", rows)
    assert str(difference) == "helper-quantity row 1: value: want 2, got 1"
