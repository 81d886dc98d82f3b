"""Published values are met to the last digit; ``python -m tests.openb`` checks all of them."""

from __future__ import annotations

import pytest

from tests.openb.published import differences, folder, published_trace, run


@pytest.mark.skipif(folder() is None, reason="the data are not at hand")
@pytest.mark.parametrize("policy", ["FGD", "GpuPacking"])
def test_a_published_experiment_is_met_to_the_last_digit(policy: str) -> None:
    data = folder()
    assert data is not None
    assert list(differences(data, run(published_trace(data, "multigpu30"), policy, 42))) == []
