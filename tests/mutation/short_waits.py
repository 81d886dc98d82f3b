"""Integration tests wait less long for what a mutant has lost."""

from __future__ import annotations

import pytest

from simcluster.tests.support import timeouts

WAIT_TIMEOUT_S = 15.0
"""Far longer than any of these tests takes, for a judged process has little beside it."""


class ShortWaits:
    """A plugin of pytest that shortens the longest wait of the integration tests."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Set it before the tests are imported, for they copy it."""
        timeouts.WAIT_TIMEOUT_S = WAIT_TIMEOUT_S
