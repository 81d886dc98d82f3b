"""Child processes that end with the command that started them."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

_STOP_TIMEOUT_S = 8.0
_LOG_TAIL_LINES = 15
_LOG_LINE_CHARACTERS = 500
_PR_SET_PDEATHSIG = 1


class ProcessDiedError(Exception):
    """A process ended although it was still needed."""

    def __init__(self, name: str, exit_status: int, log_tail: str) -> None:
        super().__init__(f"{name} ended with status {exit_status}:\n{log_tail}")


class ChildProcess:
    """A process in a group of its own, with its output in a file.

    Attributes:
        name: What messages call it.
        log: Where stdout and stderr go.
        pid: Of the process, also its group's.
    """

    def __init__(self, name: str, command: Sequence[str], log: Path) -> None:
        self.name = name
        self.log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(  # noqa: S603 - our own command line
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - no thread is running here
            )
        self.pid = self._process.pid

    @property
    def exit_status(self) -> int | None:
        """None while the process runs; minus the number of the signal that killed it."""
        return self._process.poll()

    def send_signal(self, signal_number: signal.Signals) -> None:
        """Send a signal to the group; nothing if it has ended."""
        self._signal_group(signal_number)

    def check(self) -> None:
        """Check that the process runs.

        Raises:
            ProcessDiedError: it has ended; with the end of its output.
        """
        exit_status = self._process.poll()
        if exit_status is not None:
            raise ProcessDiedError(self.name, exit_status, self.log_tail())

    def log_tail(self) -> str:
        """The last lines of the output."""
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join(line[:_LOG_LINE_CHARACTERS] for line in lines[-_LOG_TAIL_LINES:])

    def stop(self) -> None:
        """Stop the group with SIGTERM, then with SIGKILL."""
        self._signal_group(signal.SIGTERM)
        try:
            self._process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._signal_group(signal.SIGKILL)
            self._process.wait()
        # The process has ended; processes that it started may still run.
        self._signal_group(signal.SIGKILL)

    def _signal_group(self, signal_number: signal.Signals) -> None:
        try:
            os.killpg(self.pid, signal_number)
        except ProcessLookupError:
            return  # the group is empty


class ChildProcesses:
    """Stops all processes started through it, last one first, however the block is left.

    Args:
        log_directory: Where their output goes, one file each.
    """

    def __init__(self, log_directory: Path) -> None:
        self._log_directory = log_directory
        self._children: list[ChildProcess] = []
        self._previous_handler: Any = signal.SIG_DFL

    def __enter__(self) -> ChildProcesses:
        # Without a handler, SIGTERM would end this process and leave the children running.
        self._previous_handler = signal.signal(signal.SIGTERM, _exit_on_sigterm)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        while self._children:
            self._children.pop().stop()
        signal.signal(signal.SIGTERM, self._previous_handler)

    def start_stowage(self, name: str, *arguments: str) -> ChildProcess:
        """Start ``stowage ARGUMENTS`` with this interpreter."""
        return self.start(name, [sys.executable, "-m", "stowage.cli", *arguments])

    def start(self, name: str, command: Sequence[str]) -> ChildProcess:
        """Start any command.

        Raises:
            OSError: there is no such program.
        """
        child = ChildProcess(name, command, self._log_directory / f"{name}.log")
        self._children.append(child)
        return child

    def stop(self, child: ChildProcess) -> None:
        """Stop a process, if it was not stopped before."""
        if child in self._children:
            self._children.remove(child)
            child.stop()

    @property
    def children(self) -> tuple[ChildProcess, ...]:
        """The processes started, in their order."""
        return tuple(self._children)

    def check(self) -> None:
        """Raise `ProcessDiedError` if one of the processes has ended."""
        for child in self._children:
            child.check()


def _exit_on_sigterm(signal_number: int, _frame: object) -> None:
    sys.exit(128 + signal_number)


def _die_with_parent() -> None:
    """Have the kernel end the child if its parent is killed (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
