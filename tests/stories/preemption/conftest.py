"""An engine whose pending pods may preempt running ones."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.stories.preemption.driver import PreemptionDriver


@pytest.fixture
def driver() -> Iterator[PreemptionDriver]:
    """A driver without nodes; at the end a replay of its calls gives the same answers."""
    driver = PreemptionDriver()
    yield driver
    driver.check_replay()
