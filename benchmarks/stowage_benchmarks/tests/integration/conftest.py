"""What the benchmarks measure is read from /proc."""

from __future__ import annotations

import sys

import pytest


def pytest_runtest_setup() -> None:
    """Skip each test of this folder on other systems than Linux."""
    if sys.platform != "linux":
        pytest.skip("only Linux has /proc")
