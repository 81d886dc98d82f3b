"""Published values are met to the last digit; ``python -m tests.openb`` checks all of them."""

from __future__ import annotations

import sys

import pytest

from tests.openb.__main__ import main
from tests.openb.published import differences, folder, published_trace, run


def test_an_unknown_trace_is_a_usage_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["openb", "default", "nope"])
    with pytest.raises(SystemExit):
        main()
    assert "nope: expected one of default, gpushare40, multigpu30" in capsys.readouterr().err


@pytest.mark.skipif(folder() is None, reason="the data are not at hand")
@pytest.mark.parametrize("policy", ["FGD", "GpuPacking"])
def test_a_published_experiment_is_met_to_the_last_digit(policy: str) -> None:
    data = folder()
    assert data is not None
    assert list(differences(data, run(published_trace(data, "multigpu30"), policy, 42))) == []
