"""`stowage run` parses flags like kube-scheduler and applies them over the file."""

from pathlib import Path

import pytest

from stowage.api.config.loading import InvalidConfiguration, KubeSchedulerConfiguration
from stowage.api.events import Event
from stowage.cli import composition
from stowage.cli.composition import run_options
from stowage.cli.flag_overrides import effective_configuration
from stowage.operator.run_options import EngineDependencies, RunOptions
from tests.support.run_command import run_command

HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def test_without_flags_the_defaults_apply(started: list[RunOptions]) -> None:
    assert run_command() == (0, "")
    (options,) = started
    assert options.scheduler_names == ("stowage",)
    assert options.kubeconfig is None
    assert options.serving is not None
    assert options.serving.port == 10259
    assert options.leader_election is not None
    assert options.leader_election.lease_name == "stowage"


def test_flags_are_parsed_as_by_kube_scheduler(started: list[RunOptions], tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.touch()
    exit_status, errors = run_command(
        f"--kubeconfig={kubeconfig}",
        "--leader-elect",
        "--leader-elect-lease-duration=30s",
        "--leader-elect-renew-deadline",
        "20s",
        "--leader-elect-resource-name=another",
        "-v=4",
        "--secure-port=0",
    )
    assert (exit_status, errors) == (0, "")
    (options,) = started
    assert options.kubeconfig == str(kubeconfig)
    assert options.serving is None
    assert options.leader_election is not None
    assert options.leader_election.lease_duration_s == 30
    assert options.leader_election.renew_deadline_s == 20
    assert options.leader_election.lease_name == "another"


def test_leader_election_can_be_disabled(started: list[RunOptions]) -> None:
    assert run_command("--leader-elect=false") == (0, "")
    assert started[0].leader_election is None


def test_flags_override_the_file(started: list[RunOptions], tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(
        HEADER
        + "leaderElection: {resourceName: from-file, resourceNamespace: from-file}\n"
        + "clientConnection: {kubeconfig: /from/file}\n"
        + "profiles: [{schedulerName: a}, {schedulerName: b}]\n"
    )
    assert run_command(f"--config={file}", "--leader-elect-resource-name=from-flag") == (0, "")
    (options,) = started
    assert options.scheduler_names == ("a", "b")
    assert options.kubeconfig == "/from/file"
    assert options.leader_election is not None
    assert options.leader_election.lease_name == "from-flag"
    assert options.leader_election.lease_namespace == "from-file"


def test_an_invalid_file_ends_the_command_with_its_errors(
    started: list[RunOptions], tmp_path: Path
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(HEADER + "parallelism: 0\n")
    exit_status, errors = run_command(f"--config={file}")
    assert exit_status == 1
    assert "parallelism" in errors
    assert started == []


@pytest.mark.parametrize("flag", ["--leader-elect=maybe", "--leader-elect-lease-duration=soon"])
def test_an_invalid_flag_is_refused(started: list[RunOptions], flag: str) -> None:
    exit_status, errors = run_command(flag)
    assert exit_status == 2
    assert started == []
    assert f"Invalid value for '{flag.partition('=')[0]}': " in errors
    assert "Value error" not in errors


def test_metrics_are_disabled_by_lists_of_names(started: list[RunOptions]) -> None:
    flags = ("--disabled-metrics=a_total,b:c", "--disabled-metrics=d_s", "--disabled-metrics=")
    assert run_command(*flags)[0] == 0
    assert started[0].disabled_metrics == {"a_total", "b:c", "d_s"}


@pytest.mark.parametrize("name", ["a-b", "1st", "a,b c", 'up{job="x"}'])
def test_what_is_no_name_of_a_metric_is_refused(started: list[RunOptions], name: str) -> None:
    code, errors = run_command(f"--disabled-metrics={name}")
    assert code == 2
    assert "must be fully qualified metric names" in errors
    assert not started


@pytest.mark.parametrize("duration", ["1s", "0s"])
def test_contradictory_flags_are_refused(started: list[RunOptions], duration: str) -> None:
    exit_status, errors = run_command(f"--leader-elect-lease-duration={duration}")
    assert exit_status == 1
    assert "leaderElection.leaseDuration" in errors
    assert started == []


def test_a_missing_kubeconfig_is_refused(started: list[RunOptions]) -> None:
    exit_status, errors = run_command("--kubeconfig=/nonexistent/kubeconfig")
    assert exit_status == 2
    assert "/nonexistent/kubeconfig" in errors
    assert started == []


def test_a_folder_that_cannot_be_made_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_options: RunOptions) -> int:
        raise PermissionError(13, "Permission denied", "/recordings")

    monkeypatch.setattr(composition, "run_scheduler", fail)
    monkeypatch.setattr(composition, "set_up_logging", lambda *_flags: None)
    assert run_command("--record=/recordings") == (
        1,
        "cannot run: /recordings: Permission denied\n",
    )


def test_a_scheduler_name_names_the_only_profile() -> None:
    configuration = effective_configuration(None, "mine", {})
    assert [profile.scheduler_name for profile in configuration.profiles] == ["mine"]


def test_a_scheduler_name_together_with_a_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(HEADER)
    with pytest.raises(InvalidConfiguration, match="--scheduler-name"):
        effective_configuration(file, "mine", {})


def test_the_engine_has_a_framework_for_each_profile() -> None:
    flags = {"leader_election": {"leader_elect": False}}
    posted: list[Event] = []
    options = run_options(
        effective_configuration(None, "mine", flags),
        None,
        None,
        max_in_unschedulable_s=60.0,
    )
    parts = EngineDependencies(choose=lambda n: n - 1, timer=lambda: 0.0, post=posted.append)
    engine = options.engine_factory(parts)
    assert engine.has_ready_pods() is False
    assert engine.cache_counts()["nodes"] == 0
    shown = options.configuration.shown
    assert shown["profiles"][0]["schedulerName"] == "mine"


def test_the_effective_configuration_is_decoded() -> None:
    assert isinstance(effective_configuration(None, None, {}), KubeSchedulerConfiguration)


@pytest.mark.parametrize("flag", ["--config=file.yaml", "--scheduler-name=mine"])
def test_a_config_map_excludes_other_sources_of_profiles(
    started: list[RunOptions], flag: str
) -> None:
    exit_status, errors = run_command("--configmap=a/b", flag)
    assert exit_status == 1
    assert f"no {flag.partition('=')[0]}" in errors
    assert started == []


def test_a_config_map_is_read_and_then_watched(
    started: list[RunOptions], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = HEADER + "leaderElection: {resourceName: from-map}\nprofiles: [{schedulerName: a}]\n"
    monkeypatch.setattr(composition, "read_config_map", lambda *_where: text)
    assert run_command("--configmap=a/b:c", "--leader-elect-lease-duration=20s") == (0, "")
    (options,) = started
    assert options.scheduler_names == ("a",)
    assert options.leader_election is not None
    assert options.leader_election.lease_name == "from-map"
    assert options.config_map is not None
    assert str(options.config_map.reference) == "a/b:c"
    # Flags are applied to later versions too, so an unchanged version has the same hash.
    assert options.config_map.load(text).hash == options.configuration.hash
    with pytest.raises(InvalidConfiguration, match=r"leaderElection\.resourceName"):
        options.config_map.load(text.replace("from-map", "another"))


def test_a_config_map_may_not_name_a_kubeconfig(
    started: list[RunOptions], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = HEADER + "clientConnection: {kubeconfig: /some/where}\n"
    monkeypatch.setattr(composition, "read_config_map", lambda *_where: text)
    exit_status, errors = run_command("--configmap=a/b")
    assert exit_status == 1
    assert "clientConnection.kubeconfig" in errors
    assert started == []


def test_every_flag_is_shown_with_its_value(started: list[RunOptions]) -> None:
    assert run_command("--leader-elect=false", "--leader-elect-retry-period=1500ms", "-v=2")[0] == 0
    flags = started[0].flags
    assert flags["leader-elect"] == "false"
    assert flags["leader-elect-retry-period"] == "1.5s"
    assert flags["leader-elect-lease-duration"] == "15s"
    assert flags["secure-port"] == "10259"
    assert flags["tls-min-version"] == "VersionTLS12"
    assert flags["v"] == "2"
    assert "help" not in flags


def test_values_of_lists_and_accepted_flags_are_shown_as_given(started: list[RunOptions]) -> None:
    gates = "--feature-gates=GenericWorkload=true,GangScheduling=true"
    assert run_command(gates, "--vmodule=schedule_one=5", "--profiling")[0] == 0
    flags = started[0].flags
    assert flags["feature-gates"] == "GenericWorkload=true,GangScheduling=true"
    assert flags["vmodule"] == "schedule_one=5"
    assert flags["profiling"] == "true"
    assert started[0].configuration.shown["enableProfiling"] is True
