"""Runs the shell blocks of a page, one after the other, in one shell.

Every block of a page is handled by its kind:

- a ``sh`` block is run as it is; a command that fails ends the page;
- a ``console`` block has commands after ``$ `` and their output below. The lines must appear
  in this order. White space counts as one blank, and ``...`` stands for anything. Where there is
  ``<!-- exits: 1 -->`` above the block, its commands end with that status;
- a block below ``<!-- file: NAME -->`` is written to that file;
- a block below ``<!-- shows: PATH -->`` is the text of that file of the checkout;
- a block below ``<!-- not run: REASON -->`` is skipped.

Background processes end with the page.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tests.docs.pages import ROOT, Block, blocks

BIN = ROOT / ".venv" / "bin"
TIMEOUT_S = 180
_MARK = "@@ block"
#: The entries of the checkout that a page needs.
_CHECKOUT = (
    ".venv",
    "benchmarks",
    "config",
    "docs",
    "examples",
    "manifests",
    "scheduler",
    "simcluster",
)


class PageError(AssertionError):
    """A block of a page failed or printed something else."""


def run_page(page: Path, folder: Path, before: str = "") -> None:
    """Run all blocks of a page in an empty folder with the files of the checkout.

    Args:
        page: The page.
        folder: The empty folder.
        before: Commands that run first.

    Raises:
        PageError: a command failed, or printed something else than the page shows.
    """
    for name in _CHECKOUT:
        (folder / name).symlink_to(ROOT / name)
    steps = list(_steps(page))
    script, log = folder / ".script", folder / ".log"
    script.write_text(
        f"set -e\n{before}\n" + "\n".join(text for _, text, _ in steps), encoding="utf-8"
    )
    status = _run(["bash", str(script)], folder, log)
    sections = _sections(log.read_text(encoding="utf-8", errors="replace"))
    for number, (block, text, expected) in enumerate(steps):
        if number not in sections:
            break
        printed = sections[number]
        missing = _first_missing(expected, printed)
        if missing is not None:
            raise PageError(f"{block.place}: no line {missing!r} from\n{text}\nin\n{printed}")
    if status != 0:
        last = max(sections, default=0)
        raise PageError(f"{steps[last][0].place}: exit status {status}\n{sections.get(last, '')}")


def _steps(page: Path) -> Iterator[tuple[Block, str, list[str]]]:
    """(block, shell text, expected lines); the text prints a numbered mark first."""
    number = 0
    for block in blocks(page):
        for text, expected in _commands(block):
            yield block, f"echo '{_MARK} {number}'\n{text}", expected
            number += 1


def _commands(block: Block) -> Iterator[tuple[str, list[str]]]:
    if "not run" in block.notes or "shows" in block.notes:
        return
    if "file" in block.notes:
        target = shlex.quote(block.notes["file"])
        yield f"cat >{target} <<'@@ end of file'\n{block.text}@@ end of file", []
    elif block.language == "sh":
        yield block.text, []
    elif block.language == "console":
        status = block.notes.get("exits", "0")
        for command, expected in block.commands:
            yield f"ended=0; {{ {command}\n}} || ended=$?; test $ended = {status}", expected


def _run(command: list[str], folder: Path, log: Path) -> int:
    environment = {
        **{name: value for name, value in os.environ.items() if name != "KUBECONFIG"},
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "HOME": str(folder),
        "COLUMNS": "200",
        # pip installs into the folder and downloads nothing: no page changes the environment.
        "PIP_TARGET": str(folder / ".site"),
        "PYTHONPATH": os.pathsep.join(
            filter(None, (str(folder / ".site"), os.environ.get("PYTHONPATH")))
        ),
        "PIP_NO_INDEX": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip reads this as the value of build isolation.
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    with log.open("wb") as output:
        shell = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            return shell.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return -1
        finally:
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGTERM)


def _sections(log: str) -> dict[int, str]:
    """The output after each mark."""
    parts = re.split(rf"(?m)^{_MARK} (\d+)$", log)
    return {int(number): text for number, text in zip(parts[1::2], parts[2::2], strict=True)}


def _first_missing(expected: list[str], printed: str) -> str | None:
    """The first expected line that does not appear after the lines before it."""
    lines = iter([" ".join(line.split()) for line in printed.splitlines()])
    for line in expected:
        words = " ".join(line.split())
        parts = [re.escape(part.strip()) for part in words.split("...")]
        pattern = re.compile(".*".join(parts))
        if not any(pattern.search(each) for each in lines):
            return line
    return None
