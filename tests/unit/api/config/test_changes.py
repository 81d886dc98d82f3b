"""Fields that can change while the scheduler runs, and fields that need a restart."""

from __future__ import annotations

from typing import Any

import pytest

from stowage.api.config.changes import restart_errors
from stowage.api.config.loading import API_VERSION, KIND, configuration_hash, load_configuration


def load(**fields: Any) -> Any:
    return load_configuration({"apiVersion": API_VERSION, "kind": KIND, **fields})


@pytest.mark.parametrize(
    "change",
    [
        {"percentageOfNodesToScore": 40},
        {"podInitialBackoffSeconds": 2, "podMaxBackoffSeconds": 60},
        {"profiles": [{"schedulerName": "a"}, {"schedulerName": "b"}]},
    ],
)
def test_profiles_and_the_queues_times_change_at_once(change: dict[str, Any]) -> None:
    assert restart_errors(load(), load(**change)) == []


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"parallelism": 2}, "parallelism"),
        ({"leaderElection": {"leaseDuration": "40s"}}, "leaderElection.leaseDuration"),
        ({"clientConnection": {"qps": 5}}, "clientConnection.qps"),
        ({"extenders": [{"urlPrefix": "http://localhost:1"}]}, "extenders"),
    ],
)
def test_all_other_fields_need_a_restart(change: dict[str, Any], path: str) -> None:
    (error,) = restart_errors(load(), load(**change))
    assert error.path == path
    assert "restart" in error.expectation


def test_the_error_names_the_value_at_the_start() -> None:
    (error,) = restart_errors(load(parallelism=8), load(parallelism=2))
    assert str(error).startswith("parallelism: 2 (expected 8 as at the start")


def test_the_hash_depends_only_on_the_configuration() -> None:
    one = {"kind": KIND, "parallelism": 1}
    assert configuration_hash(one) == configuration_hash(dict(reversed(one.items())))
    assert configuration_hash(one) != configuration_hash({**one, "parallelism": 2})
    assert configuration_hash({}) == "44136fa355b3"
