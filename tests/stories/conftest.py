"""An engine with the default plugins, checked for every invariant when a story ends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stowage.engine import Engine
from tests.support.engines import default_engine


@pytest.fixture
def engine() -> Iterator[Engine]:
    """The default profile; ties go to the first."""
    built = default_engine()
    yield built
    built.validate()
