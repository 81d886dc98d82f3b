"""`stowage run` with a Policy, an algorithm provider, and KUBE_MAX_PD_VOLS."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stowage.api.config.loading import InvalidConfiguration, load_configuration, to_builtins
from stowage.cli.max_volumes import max_volumes, with_max_volumes
from stowage.cli.policy_file import provider_configuration
from stowage.operator.run_options import RunOptions
from tests.support.run_command import run_command

POLICY = '{"kind": "Policy", "apiVersion": "v1",\n\t"priorities": []}'
CONFIG = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def run(*flags: str, **environment: str) -> tuple[int, str]:
    """The outcome of the command without the variable of the limits, unless it is given."""
    return run_command(*flags, **{"KUBE_MAX_PD_VOLS": "", **environment})


def shown_profile(started: list[RunOptions]) -> dict[str, Any]:
    """The effective profile of the only start."""
    (options,) = started
    assert options.configuration is not None
    profiles: list[dict[str, Any]] = options.configuration.shown["profiles"]
    return profiles[0]


@pytest.fixture
def policy(tmp_path: Path) -> str:
    """A Policy without priorities."""
    file = tmp_path / "policy.json"
    file.write_text(POLICY)
    return str(file)


def test_a_policy_file_is_run_under_the_given_name(started: list[RunOptions], policy: str) -> None:
    flags = ("--scheduler-name=mine", "--leader-elect=false")
    assert run(f"--policy-config-file={policy}", *flags) == (0, "")
    profile = shown_profile(started)
    assert profile["schedulerName"] == "mine"
    assert profile["plugins"]["score"] == {"enabled": [{"name": "EqualPriority", "weight": 1}]}
    assert started[0].leader_election is None


@pytest.mark.parametrize(
    ("provider", "priority"),
    [
        ("DefaultProvider", "LeastRequestedPriority"),
        ("ClusterAutoscalerProvider", "MostRequestedPriority"),
    ],
)
def test_a_provider_is_run(started: list[RunOptions], provider: str, priority: str) -> None:
    assert run(f"--algorithm-provider={provider}") == (0, "")
    enabled = shown_profile(started)["plugins"]["score"]["enabled"]
    assert {"name": priority, "weight": 1} in enabled


def test_an_unknown_provider_is_refused(started: list[RunOptions]) -> None:
    exit_status, errors = run("--algorithm-provider=Default")
    want = '--algorithm-provider: "Default" (expected one of DefaultProvider, '
    assert (exit_status, started) == (1, [])
    assert want in errors


def test_a_policy_with_errors_is_refused(started: list[RunOptions], tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("kind: Policy\napiVersion: v1\npredicates: [{name: Unknown}]\n")
    exit_status, errors = run(f"--policy-config-file={file}")
    assert (exit_status, started) == (1, [])
    assert 'predicates[0].name: "Unknown" (expected a predicate of kube-scheduler 1.12)' in errors


@pytest.mark.parametrize(
    ("flags", "want"),
    [
        (("--policy-config-file", "--config"), "--policy-config-file: {} (expected no --config,"),
        (
            ("--policy-config-file", "--algorithm-provider"),
            "--policy-config-file: {} (expected no --algorithm-provider,",
        ),
        (("--algorithm-provider", "--config"), "--algorithm-provider: {} (expected no --config,"),
        (
            ("--configmap", "--policy-config-file", "--algorithm-provider"),
            "--configmap: {} (expected no --policy-config-file and no --algorithm-provider,",
        ),
    ],
)
def test_flags_that_set_the_profiles_exclude_each_other(
    started: list[RunOptions], policy: str, tmp_path: Path, flags: tuple[str, ...], want: str
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG)
    values = {
        "--policy-config-file": policy,
        "--config": str(config),
        "--algorithm-provider": "DefaultProvider",
        "--configmap": "kube-system/stowage",
    }
    exit_status, errors = run(*(f"{flag}={values[flag]}" for flag in flags))
    assert (exit_status, started) == (1, [])
    assert want.format(f'"{values[flags[0]]}"') in errors


def max_volumes_of(profile: dict[str, Any]) -> dict[str, int | None]:
    """The argument ``maxVolumes`` of the plugins that have it."""
    return {
        entry["name"]: entry["args"]["maxVolumes"]
        for entry in profile["pluginConfig"]
        if "maxVolumes" in entry["args"]
    }


@pytest.mark.parametrize(("value", "limit"), [("", None), ("20", 20)])
def test_the_environment_variable_is_the_limit_of_volumes(
    started: list[RunOptions], value: str, limit: int | None
) -> None:
    assert run("--algorithm-provider=DefaultProvider", KUBE_MAX_PD_VOLS=value) == (0, "")
    names = ("MaxAzureDiskVolumeCount", "MaxEBSVolumeCount", "MaxGCEPDVolumeCount")
    assert max_volumes_of(shown_profile(started)) == dict.fromkeys(names, limit)


@pytest.mark.parametrize("value", ["0", "-1", "many", "1.5"])
def test_a_limit_that_is_no_positive_number_is_refused(
    started: list[RunOptions], value: str
) -> None:
    exit_status, errors = run(KUBE_MAX_PD_VOLS=value)
    assert (exit_status, started) == (1, [])
    assert f'KUBE_MAX_PD_VOLS: "{value}" (expected a whole number above 0)' in errors
    with pytest.raises(InvalidConfiguration):
        max_volumes({"KUBE_MAX_PD_VOLS": value})


def test_an_argument_in_the_configuration_comes_before_the_environment() -> None:
    builtins = to_builtins(provider_configuration("DefaultProvider"))
    args = {"name": "MaxEBSVolumeCount", "args": {"maxVolumes": 3}}
    builtins["profiles"] = [{**builtins["profiles"][0], "pluginConfig": [args]}]
    configuration = with_max_volumes(load_configuration(builtins), 20)
    limits = {
        each.name: each.args["maxVolumes"] for each in configuration.profiles[0].plugin_config
    }
    assert limits == {
        "MaxEBSVolumeCount": 3,
        "MaxGCEPDVolumeCount": 20,
        "MaxAzureDiskVolumeCount": 20,
    }


def test_the_environment_leaves_profiles_without_the_plugins_alone() -> None:
    assert with_max_volumes(load_configuration(), 20) == load_configuration()
