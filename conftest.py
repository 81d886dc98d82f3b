"""Settings of all tests: shared fixtures, Hypothesis profiles, number of workers."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from hypothesis import HealthCheck, settings

pytest_plugins = ["simcluster.tests.support.api_server_fixtures"]

# Output has the width and the colours of a pipe, whatever terminal the tests are run in.
for _name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS"):
    os.environ.pop(_name, None)

# Servers that tests start are reached directly, also by libraries that know no loopback addresses.
_DIRECT = ("127.0.0.1", "::1", "localhost")
_NO_PROXY = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
os.environ["no_proxy"] = os.environ["NO_PROXY"] = ",".join(filter(None, (_NO_PROXY, *_DIRECT)))

# Random examples for developers, the same examples each time in CI. No test fails for being slow.
WITHOUT_DEADLINE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("random", WITHOUT_DEADLINE)
settings.register_profile("ci", WITHOUT_DEADLINE, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "random")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """One worker if all integration tests share, and empty, one existing cluster."""
    del config
    return 1 if os.environ.get("STOWAGE_TEST_KUBECONFIG") else None


@pytest.fixture(autouse=True, scope="session")
def _loggers_follow_their_configuration() -> Iterator[None]:
    """No logger keeps the configuration of a command that a test runs in this process.

    `capture_logs` in later tests would miss the lines of a logger that does.
    """
    usual = structlog.configure

    def configure(*arguments: Any, **settings: Any) -> None:
        usual(*arguments, **{**settings, "cache_logger_on_first_use": False})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(structlog, "configure", configure)
        yield


@pytest.fixture(autouse=True)
def _logs_are_configured_anew() -> Iterator[None]:
    """A command that a test runs in this process does not decide which lines later tests log."""
    yield
    if structlog.is_configured():
        structlog.reset_defaults()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Exempt what is alive after a module from garbage collection.

    Modules, examples and reports of thousands of tests stay in memory. Without this, every full
    collection visits all of them, and each benchmark begins with one.
    """
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()
