"""An engine with the default plugins; every invariant is checked when a test ends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stowage.engine import Engine
from tests.support.engines import default_engine


@pytest.fixture
def engine() -> Iterator[Engine]:
    """An engine with the default profile; of nodes with equal scores it takes the first."""
    built = default_engine()
    yield built
    built.validate()
