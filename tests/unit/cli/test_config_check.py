"""`stowage config check`: several files, standard input, lines, suggestions."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from stowage.api.decoding.document_lines import line_of
from stowage.cli.main import app

HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
REPOSITORY = Path(__file__).parents[3]


def check(*files: Path | str, text: str = "") -> tuple[int, str, list[str]]:
    arguments = ["config", "check", *map(str, files)]
    result = CliRunner().invoke(app, arguments, input=text, env={"COLUMNS": "80"})
    return result.exit_code, result.stdout, result.stderr.splitlines()


def written(folder: Path, text: str) -> Path:
    file = folder / f"a-path-that-is-longer-than-a-terminal-is-wide-{'x' * 40}.yaml"
    file.write_text(HEADER + text, encoding="utf-8")
    return file


def test_every_error_has_its_line_in_the_order_of_the_file(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        "profiles:\n"
        "  - plugins:\n"
        "      score:\n"
        "        enabled:\n"
        "          - {name: ImageLocality, weight: -1}\n"
        "parallelism: 0\n",
    )
    exit_code, stdout, errors = check(file)
    assert (exit_code, stdout) == (1, "")
    assert errors == [
        f"{file}:7: profiles[0].plugins.score.enabled[0].weight: -1 (expected at least 1)",
        f"{file}:8: parallelism: 0 (expected greater than 0)",
    ]


def test_all_files_are_checked_and_one_wrong_file_fails_the_command(tmp_path: Path) -> None:
    wrong = written(tmp_path, "parallelism: 0\n")
    samples = sorted((REPOSITORY / "config").glob("*.yaml"))
    exit_code, stdout, errors = check(samples[0], wrong, *samples[1:])
    assert exit_code == 1
    named = [line.removeprefix("ok: ").partition(" (")[0] for line in stdout.splitlines()]
    assert named == list(map(str, samples))
    assert f"{wrong}:3: parallelism: 0 (expected greater than 0)" in errors
    assert check(*samples)[0] == 0


def test_a_dash_reads_standard_input() -> None:
    exit_code, stdout, errors = check("-", text=HEADER)
    assert (exit_code, errors) == (0, [])
    assert stdout.startswith("ok: standard input (profiles: stowage; ")
    exit_code, _, errors = check("-", text=HEADER + "parallelism: 0\n")
    assert exit_code == 1
    assert errors == ["standard input:3: parallelism: 0 (expected greater than 0)"]


def test_a_file_that_cannot_be_read_is_named_whole(tmp_path: Path) -> None:
    file = tmp_path / ("x" * 100)
    want = f"{file}: expected a readable file; No such file or directory"
    assert check(file) == (1, "", [want])


def test_a_file_that_is_not_yaml_is_named_with_the_line(tmp_path: Path) -> None:
    file = written(tmp_path, "parallelism: [\n")
    (error,) = check(file)[2]
    assert error.startswith(f"{file}: expected a YAML document; ")
    assert "line 4" in error


@pytest.mark.parametrize(
    ("text", "want"),
    [
        (
            "profiles: [{plugins: {score: {enabled: [{name: noderesourcesfit}]}}}]",
            "did you mean NodeResourcesFit?",
        ),
        ("profiles: [{pluginConfig: [{name: NodeAfinity}]}]", "did you mean NodeAffinity?"),
        ("profiles: [{plugins: {postfilter: {}}}]", "did you mean postFilter?"),
        ("percentageOfNodeToScore: 5", "did you mean percentageOfNodesToScore?"),
    ],
)
def test_misspelt_plugins_points_and_fields_get_a_suggestion(
    tmp_path: Path, text: str, want: str
) -> None:
    exit_code, _, errors = check(written(tmp_path, text))
    assert exit_code == 1
    assert want in errors[0]


def test_an_unlike_name_gets_no_suggestion(tmp_path: Path) -> None:
    file = written(tmp_path, "profiles: [{pluginConfig: [{name: Quicksort}]}]")
    assert check(file)[2][0].endswith("(expected the name of a known plugin)")


def test_settings_without_effect_are_named_with_their_line(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        "delayCacheUntilActive: true\n"
        "enableContentionProfiling: true\n"
        "clientConnection:\n"
        "  qps: 0\n"
        "  contentType: application/vnd.kubernetes.protobuf\n"
        "profiles:\n"
        "  - plugins:\n"
        "      score:\n"
        "        disabled:\n"
        "          - name: ImageLocalty\n",
    )
    exit_code, stdout, notes = check(file)
    assert exit_code == 0
    assert stdout.startswith(f"ok: {file} ")
    assert sorted(note.partition(" without effect: ")[::2] for note in notes) == [
        (
            f"{file}:12:",
            (
                "profiles[0].plugins.score.disabled[0].name: no plugin is called ImageLocalty; "
                "did you mean ImageLocality?"
            ),
        ),
        (f"{file}:3:", "delayCacheUntilActive: a standby always keeps its cache warm"),
        (f"{file}:4:", "enableContentionProfiling: there are no locks to profile"),
        (f"{file}:7:", "clientConnection.contentType: requests to the API server are in JSON"),
    ]


@pytest.mark.parametrize(
    ("text", "notes"),
    [
        ("percentageOfNodesToScore: adaptive\n", []),
        (
            "percentageOfNodesToScore: 0\n",
            [
                (
                    "3: percentageOfNodesToScore: 0 scores all nodes; "
                    "kube-scheduler's 0 is adaptive here"
                )
            ],
        ),
        (
            "percentageOfNodesToScore: 30\nprofiles:\n  - percentageOfNodesToScore: 0\n",
            [
                "3: percentageOfNodesToScore: every profile has a value of its own",
                (
                    "5: profiles[0].percentageOfNodesToScore: 0 scores all nodes; "
                    "kube-scheduler's 0 is adaptive here"
                ),
            ],
        ),
        (
            (
                "profiles:\n"
                "  - tieBreaking: {type: FixedOrder, seed: 3}\n"
                "    disablePreemption: true\n"
                "    alwaysCheckAllPredicates: true\n"
            ),
            [],
        ),
        (
            (
                "profiles:\n"
                "  - tieBreaking: {type: RoundRobin, seed: 3}\n"
                "    disablePreemption: true\n"
                "    plugins: {postFilter: {disabled: [{name: '*'}]}}\n"
            ),
            [
                "4: profiles[0].tieBreaking.seed: RoundRobin has no seed, FixedOrder has",
                "5: profiles[0].disablePreemption: DefaultPreemption is disabled already",
            ],
        ),
        (
            (
                "profiles:\n"
                "  - tieBreaking: {scorePlugins: [{name: RequestedToCapacityRatioPriority}]}\n"
                "    pluginConfig:\n"
                "      - {name: RequestedToCapacityRatioPriority, args: {}}\n"
                "      - {name: NodeLabel, args: {presentLabels: [a]}}\n"
            ),
            ["7: profiles[0].pluginConfig[1].args: the profile does not run NodeLabel"],
        ),
    ],
)
def test_settings_of_profiles_without_effect_are_named(
    tmp_path: Path, text: str, notes: list[str]
) -> None:
    file = written(tmp_path, text)
    exit_code, _, found = check(file)
    assert exit_code == 0
    marked = [note.removeprefix(f"{file}:").replace("without effect: ", "") for note in found]
    assert sorted(marked) == notes


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("<root>", 1),
        ("a", 1),
        ("list[1]", 5),
        ("list[1].c", 6),
        ("list[9].c", 3),
        ("list[1].unheard.of", 5),
        ("flow[1].b", 8),
    ],
)
def test_a_field_that_is_absent_has_the_line_of_its_parent(path: str, line: int) -> None:
    text = "a: 1\n\nlist:\n  - b: 2\n  - b: 3\n    c: 4\nflow: [1,\n  {b: 5}]\n"
    root = yaml.compose(text)
    assert root is not None
    assert line_of(root, path) == line


def test_feature_gates_are_checked_too() -> None:
    result = CliRunner().invoke(app, ["config", "check", "-", "--feature-gates=X=1"], input=HEADER)
    assert result.exit_code == 1
    assert "unrecognized feature gate: X" in result.stderr
    gates = "--feature-gates=EventedPLEG=true,DRADeviceTaints=false"
    result = CliRunner().invoke(app, ["config", "check", "-", gates], input=HEADER)
    assert result.exit_code == 0
    assert "--feature-gates: without effect: EventedPLEG=true" in result.stderr
    assert "DRADeviceTaints" not in result.stderr


def test_the_effective_configuration_is_that_of_the_feature_gates() -> None:
    arguments = ["config", "show", "--effective", "--feature-gates=NodeDeclaredFeatures=false"]
    off = "InPlacePodLevelResourcesVerticalScaling=false,RestartAllContainersOnContainerExits=false"
    result = CliRunner().invoke(app, [*arguments, f"--feature-gates={off}"])
    assert result.exit_code == 0
    assert "NodeDeclaredFeatures" not in result.stdout
