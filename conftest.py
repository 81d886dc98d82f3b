"""Settings of all tests: shared fixtures, Hypothesis profiles, number of workers."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["simcluster.tests.support.api_server_fixtures"]

# Random examples for developers, the same examples each time in CI. No test fails for being slow.
WITHOUT_DEADLINE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("random", WITHOUT_DEADLINE)
settings.register_profile("ci", WITHOUT_DEADLINE, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "random")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """One worker if all integration tests share, and empty, one existing cluster."""
    del config
    return 1 if os.environ.get("STOWAGE_TEST_KUBECONFIG") else None
