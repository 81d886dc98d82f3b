"""Consoles as processes: the command with files, and one whose cluster changes on command."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tests.browser.live_console import TOKEN

ROOT = Path(__file__).parents[2]
STOP_S = 10.0


@dataclass(frozen=True)
class RunningConsole:
    """The address with the token; `origin` is the one of all requests."""

    url: str

    @property
    def origin(self) -> str:
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"


@dataclass(frozen=True)
class CommandedConsole(RunningConsole):
    """A console whose cluster changes on command."""

    process: subprocess.Popen[str]

    def do(self, command: str) -> str:
        """Give a command, see `live_console`; the last pod that got a node until it was done."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{command}\n")
        self.process.stdin.flush()
        return self.expect_done()

    def expect_done(self) -> str:
        """Wait for the answer to a command; the last pod that got a node."""
        assert self.process.stdout is not None
        word, count = self.process.stdout.readline().split()
        assert word == "done"
        return f"default/web-{int(count) - 1}"


@contextmanager
def console_of(path: Path) -> Iterator[RunningConsole]:
    """``stowage console --from PATH``."""
    command = [sys.executable, "-m", "stowage.cli", "console", "--from", str(path)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert process.stderr is not None
        said = ""
        for line in process.stderr:
            said += line
            if "http://" in line:
                break
        else:
            raise AssertionError(f"the console ended: {said}")
        yield RunningConsole(said[said.index("http://") :].strip())
    finally:
        process.terminate()
        process.communicate(timeout=STOP_S)


@contextmanager
def commanded_console() -> Iterator[CommandedConsole]:
    """A console whose cluster changes on command; its port stays the same when it starts again."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.browser.live_console", str(port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    console = CommandedConsole(f"http://127.0.0.1:{port}/?token={TOKEN}", process)
    try:
        console.expect_done()
        yield console
    finally:
        process.communicate(timeout=STOP_S)
