"""A command line of kube-scheduler v1.36 starts the scheduler."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import structlog
import yaml
from typer.main import get_command
from typer.testing import CliRunner

from stowage.api.config.loading import configuration_hash, load_configuration
from stowage.cli.flags_without_effect import FLAGS_WITHOUT_EFFECT, settings_of_flags
from stowage.cli.main import app
from stowage.operator.decisions.log_files import DecisionLogOptions
from stowage.operator.run_options import RunOptions

RECORDED = Path(__file__).with_name("kube_scheduler_flags.txt")
"""The names of the flags that ``kube-scheduler --help`` lists in v1.36."""


def run(*flags: str) -> tuple[int, str, list[Any]]:
    """The exit status, stderr, and the settings that were logged as without effect."""
    with structlog.testing.capture_logs() as lines:
        result = CliRunner().invoke(
            app, ["run", "--logging-format=text", *flags], env={"COLUMNS": "80"}
        )
    logged = [line for line in lines if line["event"] == "setting without effect"]
    assert len(logged) <= 1
    return result.exit_code, result.stderr, logged[0]["settings"] if logged else []


def run_flags() -> set[str]:
    group: Any = get_command(app)
    parameters = group.get_command(None, "run").params
    return {option.lstrip("-") for each in parameters for option in each.opts}


def test_every_flag_of_kube_scheduler_is_accepted() -> None:
    recorded = set(RECORDED.read_text(encoding="utf-8").split())
    assert recorded - run_flags() == {"help"}


def test_the_other_flags_are_ours() -> None:
    recorded = set(RECORDED.read_text(encoding="utf-8").split())
    assert run_flags() - recorded == {
        "anonymise",
        "algorithm-provider",
        "configmap",
        "decision-log",
        "decision-log-file-age",
        "decision-log-file-size",
        "decision-log-files",
        "policy-config-file",
        "record",
        "record-max-age",
        "record-max-size",
        "scheduler-name",
    }


def test_a_hardened_command_line_of_kubeadm_starts(
    started: list[RunOptions], tmp_path: Path
) -> None:
    kubeconfig = tmp_path / "scheduler.conf"
    kubeconfig.touch()
    assert run(
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--kubeconfig={kubeconfig}",
        "--leader-elect=true",
        "--profiling=false",
        "--contention-profiling=false",
        "--tls-min-version=VersionTLS12",
        "--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_RSA_WITH_AES_256_GCM_SHA384",
        "--feature-gates=DynamicResourceAllocation=true",
        "--v=2",
    ) == (0, "", [])
    (options,) = started
    assert options.configuration.shown["enableProfiling"] is False
    assert options.configuration.shown["enableContentionProfiling"] is False


def test_settings_without_effect_are_logged_in_one_line(started: list[RunOptions]) -> None:
    exit_status, _, settings = run(
        "--contention-profiling",
        "--feature-gates=EventedPLEG=true,OpportunisticBatching=true",
        "--http2-max-streams-per-connection=1000",
        "--log-flush-frequency=5s",
        "--kube-api-content-type=application/vnd.kubernetes.protobuf",
        "--tls-min-version=VersionTLS10",
        "--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_RSA_WITH_RC4_128_SHA",
        "--vmodule=schedule_one*=5",
        "--version=v1.36.2",
    )
    assert exit_status == 0
    assert len(started) == 1
    assert [text.partition(":")[0] for text in settings] == [
        "clientConnection.contentType",
        "--feature-gates=EventedPLEG=true",
        "--tls-cipher-suites=TLS_RSA_WITH_RC4_128_SHA",
        "--tls-min-version=VersionTLS10",
        "--http2-max-streams-per-connection=1000",
        "--vmodule=schedule_one*=5",
        "--contention-profiling=true",
        "--version=v1.36.2",
    ]


@pytest.mark.parametrize("flag", FLAGS_WITHOUT_EFFECT, ids=lambda flag: flag.name)
def test_values_that_are_satisfied_are_not_logged(started: list[RunOptions], flag: Any) -> None:
    for value in flag.satisfied:
        assert run(f"{flag.name}={value}") == (0, "", [])
    assert len(started) == len(flag.satisfied)


def test_every_value_of_a_repeated_flag_is_named() -> None:
    values = {"tls_sni_cert_key": ["a.crt,a.key", "b.crt,b.key"]}
    assert [text.partition(":")[0] for text in settings_of_flags(values)] == [
        "--tls-sni-cert-key=a.crt,a.key",
        "--tls-sni-cert-key=b.crt,b.key",
    ]


def test_gos_notation_of_flags_is_understood(started: list[RunOptions]) -> None:
    assert run("--profiling", "--secure_port=10260", "--leader-elect=F", "--config=") == (0, "", [])
    (options,) = started
    assert options.serving is not None
    assert options.serving.port == 10260
    assert options.leader_election is None


@pytest.mark.parametrize(
    ("flag", "want"),
    [
        ("--profiling=maybe", "neither true nor false"),
        ("--emulated-version=1.20", "not one of 1.33, 1.34, 1.35, 1.36"),
        ("--emulated-version=wardle=1.36", "component not registered: wardle"),
        ("--show-hidden-metrics-for-version=1.30", "must be omitted or have the value"),
        ("--vmodule=scheduler", "PATTERN=LEVEL"),
        ("--http2-max-streams-per-connection=many", "whole number"),
        ("--log-flush-frequency=soon", "soon"),
        ("--version=never", "true, false, raw or a version"),
    ],
)
def test_an_invalid_value_is_refused(started: list[RunOptions], flag: str, want: str) -> None:
    exit_status, errors, _ = run(flag)
    assert exit_status == 2
    assert want in " ".join(errors.split())
    assert started == []


@pytest.mark.parametrize(
    ("flag", "want"),
    [
        ("--feature-gates=GangSchedulin=true", "unrecognized feature gate: GangSchedulin; did you"),
        ("--leader-elect-resource-lock=endpoints", "leaderElection.resourceLock"),
    ],
)
def test_a_refused_setting_is_named(started: list[RunOptions], flag: str, want: str) -> None:
    exit_status, errors, _ = run(flag)
    assert exit_status == 1
    assert want in errors
    assert started == []


def test_feature_gates_and_the_shared_port_reach_the_process(started: list[RunOptions]) -> None:
    gates = ("--feature-gates=kube:GenericWorkload=true", "--feature-gates=kube:AllBeta=false")
    assert run(*gates, "--permit-port-sharing")[0] == 0
    (options,) = started
    assert options.feature_gates.enabled("GenericWorkload")
    assert not options.feature_gates.enabled("OpportunisticBatching")
    assert options.serving is not None
    assert options.serving.permit_port_sharing
    assert "NodeDeclaredFeatures" not in str(options.configuration.shown["profiles"])


def test_flags_about_the_client_are_part_of_the_configuration(started: list[RunOptions]) -> None:
    assert run("--kube-api-qps=50", "--kube-api-burst=7")[0] == 0
    shown = started[0].configuration.shown["clientConnection"]
    assert (shown["qps"], shown["burst"]) == (50, 7)


def test_the_written_configuration_loads_to_the_same(
    started: list[RunOptions], tmp_path: Path
) -> None:
    file = tmp_path / "written.yaml"
    assert run("--kube-api-qps=50", f"--write-config-to={file}")[0] == 0
    assert started == []
    written = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert load_configuration(written).client_connection.qps == 50
    assert run(f"--config={file}")[0] == 0
    assert started[0].configuration.hash == configuration_hash(written)


def test_the_configuration_is_not_written_over_a_file(
    started: list[RunOptions], tmp_path: Path
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("mine", encoding="utf-8")
    exit_status, errors, _ = run(f"--write-config-to={file}")
    assert exit_status == 1
    assert "File exists" in errors
    assert file.read_text(encoding="utf-8") == "mine"
    assert started == []


@pytest.mark.parametrize(("flag", "want"), [("--version", "stowage "), ("--version=raw", "Python")])
def test_the_version_is_printed(started: list[RunOptions], flag: str, want: str) -> None:
    result = CliRunner().invoke(app, ["run", flag])
    assert result.exit_code == 0
    assert want in result.stdout
    assert started == []


def test_the_limits_of_the_decision_log_reach_the_process(
    started: list[RunOptions], tmp_path: Path
) -> None:
    run(f"--decision-log={tmp_path}")
    run(
        f"--decision-log={tmp_path}",
        *("--decision-log-file-size=2", "--decision-log-file-age=1h", "--decision-log-files=3"),
    )
    usual, small = (each.decision_log for each in started)
    assert usual == DecisionLogOptions(directory=tmp_path)
    assert small == DecisionLogOptions(
        directory=tmp_path, max_file_bytes=2 * 2**20, max_file_age_s=3600.0, max_files=3
    )
