"""Reading configuration files and reporting their errors."""

from io import StringIO
from pathlib import Path

import pytest
import yaml
from rich.console import Console
from typer.testing import CliRunner

from stowage.api.config.loading import InvalidConfiguration, load_configuration
from stowage.cli.config_file import parse_configuration, print_errors, read_configuration
from stowage.cli.main import app
from stowage.cli.profiles import make_frameworks

REPOSITORY = Path(__file__).parents[3]
HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def test_the_default_file_changes_nothing() -> None:
    assert read_configuration(REPOSITORY / "config/default.yaml") == load_configuration()


def test_the_default_file_names_every_field() -> None:
    written = yaml.safe_load((REPOSITORY / "config/default.yaml").read_text())
    known = yaml.safe_load(CliRunner().invoke(app, ["config", "show"]).stdout)
    assert written == known


def test_the_bin_packing_file_fills_nodes_one_after_the_other() -> None:
    configuration = read_configuration(REPOSITORY / "config/bin-packing.yaml")
    (framework,) = make_frameworks(configuration)
    assert framework.scheduler_name == "stowage"
    (fit,) = configuration.profiles[0].plugin_config
    assert fit.args["scoringStrategy"]["type"] == "MostAllocated"
    assert "NodeResourcesBalancedAllocation" not in framework.profile.weights
    assert "NodeResourcesFit" in framework.profile.weights


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("", "it is empty"),
        ("a: [", "a YAML document"),
        (HEADER + "kind: KubeSchedulerConfiguration\n", "kind is set twice, again in line 3"),
        (HEADER + "---\n" + HEADER, "a YAML document"),
        (HEADER + "parallelism: none\n", "a whole number"),
    ],
)
def test_an_invalid_file_is_refused(tmp_path: Path, text: str, want: str) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(text)
    with pytest.raises(InvalidConfiguration, match=want):
        read_configuration(file)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match="No such file"):
        read_configuration(tmp_path / "nowhere.yaml")


def test_errors_are_printed_one_per_line(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(HEADER + "parallelism: 0\npodInitialBackoffSeconds: 0\n")
    with pytest.raises(InvalidConfiguration) as refused:
        read_configuration(file)
    console = Console(width=100, record=True, file=StringIO())
    print_errors(console, refused.value)
    assert console.export_text().splitlines() == [
        "parallelism: 0 (expected greater than 0)",
        "podInitialBackoffSeconds: 0 (expected greater than 0)",
    ]


def test_check_accepts_files_that_run_accepts() -> None:
    result = CliRunner().invoke(
        app, ["config", "check", str(REPOSITORY / "config/bin-packing.yaml")]
    )
    assert result.exit_code == 0
    assert "profiles: stowage" in result.stdout


def test_check_refuses_an_unknown_plugin_with_its_path(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(
        HEADER + "profiles: [{plugins: {score: {enabled: [{name: NodeResourceFit}]}}}]\n"
    )
    result = CliRunner().invoke(app, ["config", "check", str(file)], env={"COLUMNS": "200"})
    assert result.exit_code == 1
    assert "profiles[0].plugins.score.enabled[0].name" in result.stderr
    assert "NodeResourceFit" in result.stderr


def test_the_number_of_a_line_is_printed_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("\n" * 99 + "parallelism: 0\n" + HEADER)
    result = CliRunner().invoke(app, ["config", "check", str(file)], env={"COLUMNS": "200"})
    assert "config.yaml:100: parallelism: 0" in result.stderr


def test_show_prints_a_configuration_that_loads_to_the_same(tmp_path: Path) -> None:
    source = REPOSITORY / "config/bin-packing.yaml"
    result = CliRunner().invoke(app, ["config", "show", str(source)])
    shown = tmp_path / "shown.yaml"
    shown.write_text(result.stdout)
    assert read_configuration(shown) == read_configuration(source)


def _bomb(field: str) -> str:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    return "\n".join([*levels, f"{field}: *a8"])


@pytest.mark.parametrize(
    ("text", "want"),
    [
        (_bomb("profiles"), "its aliases expand to more than 500,000 values"),
        (_bomb("unheardOf"), "its aliases expand to more than 500,000 values"),
        ("profiles: &x [*x]", "its aliases expand"),
        ("extenders:\n- &x\n  tlsConfig: *x", "its aliases expand"),
        ("&x\na: *x", "its aliases expand"),
        ("profiles: " + "[" * 5_000 + "]" * 5_000, "it is nested too deeply"),
        ("parallelism: " + "9" * 10_000, "4300 digits"),
        ("parallelism: 2001-99-99", "month must be in 1..12"),
        ('parallelism: "\\ud800"', "invalid Unicode character escape code"),
        ("parallelism: \ud800", "surrogates not allowed"),
        ("#" + "x" * 2**18, "at most 262,144 characters; it has 262,145"),
    ],
    ids=range(11),
)
def test_a_malicious_document_is_refused_with_a_short_message(text: str, want: str) -> None:
    with pytest.raises(InvalidConfiguration) as refused:
        parse_configuration(text, "--config", "file")
    assert want in str(refused.value)
    assert len(str(refused.value)) < 1_000


def test_a_tab_may_separate_a_field_from_its_value() -> None:
    """As in kube-scheduler, whose parser is a port of the one used here."""
    text = (
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "parallelism:\t7\t# many"
    )
    assert parse_configuration(text, "--config", "file").parallelism == 7
