"""What others wrote into objects, files and recordings does not steer the terminal of a command."""

from __future__ import annotations

import io
import json
import re
import tokenize
from pathlib import Path
from typing import Any

import pytest
from rich.markup import escape
from typer.testing import CliRunner, Result

from stowage.cli.ask.output import plain_table
from stowage.cli.main import app
from stowage.cli.replay.report_file import write_report
from stowage.recording.frames import FrameDecoder, FrameEncoder
from tests.support.recorded_cluster import RecordedCluster

ROOT = Path(__file__).parents[3]
HOSTILE = "a\x1b]0;b\x07\x1b[2J\x9b1A\u202e[red]x\r"
STEERING = ("\x1b", "\x07", "\x9b", "\u202e", "\r")


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, list(map(str, arguments)), terminal_width=200)


@pytest.fixture
def objects(tmp_path: Path) -> Path:
    """A pod that waits for a node, with names that the API server lets through, or would not."""
    node: dict[str, Any] = {
        "kind": "Node",
        "metadata": {"name": "n", "labels": {"topology.kubernetes.io/zone": HOSTILE}},
        "spec": {"taints": [{"key": HOSTILE, "value": HOSTILE, "effect": "NoSchedule"}]},
        "status": {"allocatable": {"cpu": "1", "pods": "9", HOSTILE: "1"}},
    }
    request = {"requests": {"cpu": "9", HOSTILE: "7"}}
    pod: dict[str, Any] = {
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default", "uid": HOSTILE},
        "spec": {"schedulerName": HOSTILE, "containers": [{"name": HOSTILE, "resources": request}]},
    }
    path = tmp_path / "objects.json"
    path.write_text(json.dumps({"items": [node, pod]}))
    return path


@pytest.mark.parametrize("output", ["table", "wide", "json", "yaml"])
@pytest.mark.parametrize(
    "question",
    [("explain", "pod", "p"), ("explain", "node", "n"), ("what-if", "--drain", "n"), ("compact",)],
)
def test_no_answer_has_a_control_character_of_an_object(
    objects: Path, question: tuple[str, ...], output: str
) -> None:
    found = run(*question, "--from", objects, "-o", output)
    assert found.exit_code == 0, found.stderr
    text = found.stdout + found.stderr
    assert not [each for each in STEERING if each in text]


def test_the_characters_are_shown_as_escapes(objects: Path) -> None:
    shown = run("explain", "pod", "p", "--from", objects, "-o", "wide").stdout
    assert r"\x1b]0;b\x1b[2J\x9b1A\u202e[red]x" in shown
    answer = run("explain", "pod", "p", "--from", objects, "-o", "json").stdout
    assert json.loads(answer)["schedulerName"] == HOSTILE


def test_an_error_has_no_control_character_of_an_argument(tmp_path: Path) -> None:
    missing = run("explain", "pod", HOSTILE, "--from", tmp_path / HOSTILE)
    assert missing.exit_code == 1
    assert not [each for each in STEERING if each in missing.stderr]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: &a [*a]", "its aliases expand to more than"),
        ("[" * 100_000, "it is nested too deeply"),
        ("kind: Pod\nat: 2001-99-99", "month must be in"),
    ],
)
def test_a_file_that_would_fill_memory_or_stack_is_refused(
    tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "objects.yaml").write_text(text)
    found = run("explain", "pod", "p", "--from", tmp_path / "objects.yaml")
    assert (found.exit_code, found.exception.__class__) == (1, SystemExit)
    assert message in found.stderr


def damaged(good: bytes, before: bytes, after: bytes) -> bytes:
    """A recording whose first frame has other bytes, and the checksum of these."""
    decoder = FrameDecoder(io.BytesIO(good))
    header, frames = decoder.header(), list(decoder.frames())
    encoder = FrameEncoder()
    assert before in header + frames[0]
    return encoder.header(header.replace(before, after)) + encoder.frame(
        frames[0].replace(before, after)
    )


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            b"kubernetes.io/hostname",
            b"\xff\xfaernetes.io/hostname",
            "which this version cannot read",
        ),
        (b'"unixOffsetS":1000000.0', b'"unixOffsetS":1e300', "expected a time of 1970 to 9999"),
        (b'"segment":1', b'"segment":"x"', "Expected `int`"),
    ],
)
def test_a_recording_with_other_values_is_refused_with_its_name(
    tmp_path: Path, before: bytes, after: bytes, message: str
) -> None:
    good = RecordedCluster(["n"]).write(tmp_path / "good").read_bytes()
    path = tmp_path / "r.recording"
    path.write_bytes(damaged(good, before, after))
    for command in (("replay", path), ("explain", "node", "n", "--from", path)):
        found = run(*command)
        assert found.exit_code == 1
        assert str(path) in found.stderr.replace("\n", "")
        assert message in found.stderr.replace("\n", "")


def test_names_in_the_report_of_a_replay_become_no_elements(tmp_path: Path) -> None:
    element = "<script>alert(1)</script>"
    write_report(tmp_path / "r.html", [escape(element), plain_table(element)])
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert element not in text
    assert text.count("&lt;script&gt;") == 2


def test_no_file_of_a_command_is_unpickled() -> None:
    """Nor is text evaluated; Dask pickles between processes that have its certificates."""
    forbidden = re.compile(r"\b(?:pickle|marshal|shelve|cloudpickle)\b|(?<![.] )(?:eval|exec) [(]")
    sources = (ROOT / "scheduler" / "stowage").rglob("*.py")
    code = {path: _without_comments(path.read_text(encoding="utf-8")) for path in sources}
    assert len(code) > 100
    assert [path for path, text in code.items() if forbidden.search(text)] == []


def _without_comments(source: str) -> str:
    """The names and operators of a module."""
    names = tokenize.generate_tokens(io.StringIO(source).readline)
    return " ".join(each.string for each in names if each.type in (tokenize.NAME, tokenize.OP))
