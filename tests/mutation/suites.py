"""The tests that judge, and how they are run."""

from __future__ import annotations

import pytest
from hypothesis import Phase, settings

from tests.mutation.mutants import SOURCE

#: What judges: the suites that need no other process and no network.
SUITES = (
    "tests/unit",
    "tests/stories",
    "tests/gangs",
    "tests/properties",
    "tests/conformance",
    *(f"{SOURCE}/{room}" for room in ("api", "state", "queue", "framework", "engine", "plugins")),
)
PYTEST_FLAGS = (
    "-n0",
    "-q",
    "-s",
    "--assert=plain",  # a failure is not shown: nothing is compared in detail
    "--tb=no",
    "-pno:cacheprovider",
    "--ignore=tests/unit/experiments",  # starts processes
)


class SameExamples:
    """A plugin of pytest: Hypothesis tries the same examples each time, and simplifies none."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Load the profile before the tests are imported, for their settings inherit from it."""
        phases = [Phase.explicit, Phase.generate]
        same = settings(derandomize=True, database=None, phases=phases)
        settings.register_profile("mutation", same)
        settings.load_profile("mutation")
