"""Scenarios of pod groups, most of them recorded from kube-scheduler, are played over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from simcluster import ClusterOptions, SimulatedCluster
from simcluster.features import read_features
from simcluster.tests.support.api_client import ApiClient
from stowage.api.config.feature_gates import parse_feature_gates
from tests.gangs.checks import CHECKS
from tests.gangs.player import Player
from tests.support.integration.auditor import auditing
from tests.support.integration.running_scheduler import CONFIGURATION, running_scheduler

Json = dict[str, Any]

SCENARIOS = Path(__file__).parent / "scenarios"
FAMILY = (
    "GenericWorkload",
    "GangScheduling",
    "TopologyAwareWorkloadScheduling",
    "WorkloadAwarePreemption",
)
SERVED = read_features(
    [",".join(f"{gate}=true" for gate in FAMILY)], ["scheduling.k8s.io/v1alpha2=true"]
)
PROFILE = {"schedulerName": "default-scheduler"}


def _all() -> Iterator[Json]:
    for file in sorted(SCENARIOS.glob("*.json")):
        yield from json.loads(file.read_text(encoding="utf-8"))["scenarios"]


def _configuration(scenario: Json) -> Json:
    profiles = scenario.get("config", {}).get("profiles") or [{}]
    return {**CONFIGURATION, "profiles": [{**PROFILE, **each} for each in profiles]}


@pytest.mark.parametrize("scenario", list(_all()), ids=lambda scenario: scenario["id"])
async def test_a_scenario_ends_as_with_kube_scheduler(scenario: Json, tmp_path: Path) -> None:
    gates = ",".join(f"{gate}={str(gate in scenario['gates']).lower()}" for gate in FAMILY)
    # As when they were recorded, no controller runs: finalizers of groups stay.
    options = ClusterOptions(with_kubelet=False, with_controllers=False, gates=SERVED)
    async with SimulatedCluster(options=options) as cluster:
        kubeconfig = cluster.write_kubeconfig(tmp_path / "kubeconfig")
        with auditing(cluster) as auditor:
            async with (
                ApiClient(cluster.url, "") as api,
                running_scheduler(
                    kubeconfig,
                    _configuration(scenario),
                    feature_gates=parse_feature_gates([gates]),
                ),
            ):
                await Player(api, auditor).play(scenario["steps"])


def test_every_scenario_has_a_name_of_its_own_and_known_checks() -> None:
    scenarios = list(_all())
    assert len({each["id"] for each in scenarios}) == len(scenarios) > 50
    checks = {
        step["expect"]["check"] for each in scenarios for step in each["steps"] if "expect" in step
    }
    assert checks == set(CHECKS)
