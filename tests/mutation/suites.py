"""The tests that judge, and how they are run."""

from __future__ import annotations

import pytest
from hypothesis import Phase, settings

from tests.mutation.mutants import SOURCE

#: Integration tests that start no process: the shell runs in the event loop of the test.
_IN_PROCESS = (
    "analysis/test_bad_clusters.py",
    "analysis/test_observer.py",
    "analysis/test_pod_groups.py",
    "client",
    "extensions/test_custom_resources.py",
    "extensions/test_extender_client.py",
    "extensions/test_gated_pods.py",
    "extensions/test_pod_groups.py",
    "process/test_configmap.py",
    "process/test_metrics_of_a_run.py",
    "process/test_operator_shell.py",
    "scheduling/test_claims.py",
    "scheduling/test_preemption.py",
    "scheduling/test_scheduling.py",
    "scheduling/test_volumes.py",
    "security/test_connection_limits.py",
    "security/test_endpoints_access.py",
)
_LIVES = "tests/simulation/test_simulation.py::test_random_faults"
#: Simulated lives of three replicas among faults: the shell and the engine on a virtual clock.
_SIMULATED = (
    f"{_LIVES}_violate_no_invariant[7]",
    f"{_LIVES}_with_devices_violate_no_invariant[0]",
    f"{_LIVES}_with_pod_groups_violate_no_invariant[3]",
)
#: What judges: the suites that need no other process and no other machine.
SUITES = (
    "tests/unit",
    "tests/stories",
    "tests/gangs",
    "tests/properties",
    "tests/conformance",
    *(f"tests/integration/{tests}" for tests in _IN_PROCESS),
    *_SIMULATED,
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
