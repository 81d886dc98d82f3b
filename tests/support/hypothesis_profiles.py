"""How hypothesis searches, and how many tests run at once."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

# At random at a desk, the same examples each time in CI. Nothing fails for being slow.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("desk", PATIENT)
settings.register_profile("ci", PATIENT, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "desk")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """One worker where all integration tests share, and empty, one existing cluster."""
    del config
    return 1 if os.environ.get("STOWAGE_TEST_KUBECONFIG") else None
