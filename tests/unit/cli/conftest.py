"""A start of `stowage run` that ends before the scheduler runs."""

from __future__ import annotations

import pytest

from stowage.cli import composition
from stowage.operator.run_options import RunOptions


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[RunOptions]:
    """Collects the options of `run` instead of running."""
    collected: list[RunOptions] = []

    def collect(options: RunOptions) -> int:
        collected.append(options)
        return 0

    monkeypatch.setattr(composition, "run_scheduler", collect)
    monkeypatch.setattr(composition, "set_up_logging", lambda *_flags: None)
    return collected
