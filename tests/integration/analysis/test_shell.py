"""``stowage shell`` keeps a cluster loaded, and no question changes it for the next one."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from stowage.analysis.compact import CompactAnswer
from stowage.api.config.loading import load_configuration
from stowage.cli.ask import conversation
from stowage.cli.ask.conversation import answer_line
from stowage.cli.ask.flags import ClusterFlags
from stowage.cli.ask.source import ClusterContents, read_files
from stowage.cli.profiles import make_frameworks
from tests.integration.analysis.commands import POD, objects, run_stowage

NO_PROFILES = load_configuration(None)


def test_questions_are_answered_one_after_the_other(tmp_path: Path) -> None:
    pod = tmp_path / "pod.json"
    pod.write_text(json.dumps(POD))
    lines = [
        f"what-if -f {pod} --drain n1,n2,n3",
        f"what-if -f {pod}",
        "explain node n1",
        "explain pod none",
        "explain 'pod",
        "nonsense",
        f"capacity -f {pod} -o json",
        "compact",
        "reload",
        "exit",
        "explain node n2",
    ]
    done = run_stowage("shell", "--from", objects(tmp_path), stdin="\n".join(lines))
    assert done.returncode == 0
    assert done.stdout.count("default/p") == 2
    assert "3 node(s) were unschedulable" in done.stdout
    assert "goes to" in done.stdout
    assert "n1: 0 pods" in done.stdout
    assert '"fits": 9' in done.stdout
    assert "3 of 3 nodes could be removed" in done.stdout
    assert "n2: 0 pods" not in done.stdout
    assert done.stderr.count("3 nodes, 0 pods") == 2
    assert "there is no pod default/none" in done.stderr
    assert "No closing quotation" in done.stderr
    assert "no question begins with nonsense" in done.stderr


def test_an_answer_that_is_not_written_to_its_end_is_reported(tmp_path: Path) -> None:
    """The limit of the shell, here 1 KiB a file, does what a full disk does."""
    command = f"{sys.executable} -m stowage.cli shell --from {objects(tmp_path)}"
    with (tmp_path / "answers").open("wb") as answers:
        done = subprocess.run(
            ["bash", "-c", f"ulimit -f 1; exec {command}"],
            env={**os.environ, "PYTHONUNBUFFERED": ""},
            input=b"explain node n1\nwhat-if --add-nodes 9 --like n1 -o json\nexplain node n2\n",
            stdout=answers,
            stderr=subprocess.PIPE,
            check=False,
        )
    heading, *lines = done.stderr.decode().splitlines()
    assert heading.startswith("3 nodes, 0 pods")
    assert lines == ["error: [Errno 27] File too large"] * 2


def test_a_cluster_that_cannot_be_read_ends_the_shell(tmp_path: Path) -> None:
    done = run_stowage("shell", "--from", str(tmp_path / "none.json"), stdin="exit\n")
    assert (done.returncode, done.stdout) == (1, "")
    assert "none.json" in done.stderr


def _interrupted(*_arguments: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("problem", ["no cluster", "an interrupt"])
def test_a_reload_that_fails_keeps_the_cluster_that_was_read_before(
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    file = Path(objects(tmp_path))

    def lines() -> Iterator[str]:
        with monkeypatch.context() as broken:
            if problem == "no cluster":
                file.rename(tmp_path / "away")
            else:
                broken.setattr(conversation, "read_contents", _interrupted)
            yield "reload"
            yield "explain node n1"
        if problem == "no cluster":
            (tmp_path / "away").rename(file)
        yield "reload"
        yield "exit"

    told = lines()
    monkeypatch.setattr("builtins.input", lambda _prompt: next(told))
    conversation.converse(ClusterFlags(files=[file]))
    shown = capfd.readouterr()
    assert "n1: 0 pods" in shown.out
    assert shown.err.count("3 nodes, 0 pods") == 2
    assert shown.err.count("answers are about the one that was read before") == 1
    assert shown.err.count(f"{file}: No such file") == (problem == "no cluster")


def test_the_answer_of_compact_is_kept_for_the_next_time(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    contents = ClusterContents(read_files([Path(objects(tmp_path))]), make_frameworks(NO_PROFILES))
    answer_line("compact -o json", contents, Console())
    assert contents.compacted is not None
    assert msgspec.json.decode(capfd.readouterr().out, type=CompactAnswer) == contents.compacted
    contents.compacted = msgspec.structs.replace(contents.compacted, removable=("kept",))
    answer_line("compact -o json", contents, Console())
    assert json.loads(capfd.readouterr().out)["removable"] == ["kept"]


def test_a_question_that_fails_leaves_no_answer(tmp_path: Path) -> None:
    contents = ClusterContents(read_files([Path(objects(tmp_path))]), make_frameworks(NO_PROFILES))
    answer_line("compact --nonsense", contents, Console())
    answer_line("explain node n1", contents, Console())
    assert contents.compacted is None


@pytest.mark.parametrize("line", ["capactiy -f pod.yaml", "'[red]x'", "''"])
def test_a_line_that_is_no_question_names_those_that_are(
    line: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    contents = ClusterContents(read_files([Path(objects(tmp_path))]), make_frameworks(NO_PROFILES))
    answer_line(line, contents, Console(stderr=True, width=200))
    word = shlex.split(line)[0]
    message = f"error: no question begins with {word}; ask: explain, what-if, capacity, compact;"
    assert capfd.readouterr().err.startswith(message)


@pytest.mark.parametrize("line", ["help capacity", "capacity --help"])
def test_help_describes_a_question(
    line: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    contents = ClusterContents(read_files([Path(objects(tmp_path))]), make_frameworks(NO_PROFILES))
    answer_line(line, contents, Console())
    assert "Count how many more pods like one fit" in capfd.readouterr().out


def test_a_line_may_not_name_another_cluster(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = objects(tmp_path)
    contents = ClusterContents(read_files([Path(file)]), make_frameworks(NO_PROFILES))
    answer_line(f"explain node n1 --from {file} --config {file}", contents, Console())
    shown = capfd.readouterr()
    assert shown.out == ""
    assert "--from, --config: only after stowage shell, which reads the cluster" in shown.err


def test_what_every_answer_needs_is_imported_before_the_first_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")  # a line on stderr per import
    questions = "explain node n1\nwhat-if --drain n1\ncompact -o json\n"
    done = run_stowage("shell", "--from", objects(tmp_path), stdin=questions)
    assert done.returncode == 0
    before, _, after = done.stderr.partition("ask: explain")
    assert "stowage.cli.ask.answers" in before
    assert "| stowage" not in after.replace("  ", "")
    assert "numpy" not in after
