"""The schedulers that a benchmark compares: Stowage, and optionally another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from simcluster.harness.launch import start_scheduler
from simcluster.harness.processes import ChildProcess, ChildProcesses


@dataclass(frozen=True, slots=True)
class Contender:
    """A scheduler that can be started.

    Attributes:
        name: Its name in the report.
        command: Starts another scheduler; ``{kubeconfig}`` in it becomes the file's path.
            Empty for Stowage.
    """

    name: str
    command: tuple[str, ...] = ()

    def start(
        self, processes: ChildProcesses, kubeconfig: Path, scheduler_name: str, port: int = 0
    ) -> ChildProcess:
        """Start it for the pods of `scheduler_name`; Stowage serves its health on `port` unless 0.

        Raises:
            OSError: the program does not exist.
        """
        if not self.command:
            return start_scheduler(processes, kubeconfig, scheduler_name, port)
        command = [each.replace("{kubeconfig}", str(kubeconfig)) for each in self.command]
        return processes.start("scheduler", command)


OURS = Contender("stowage")


def contenders(command: Sequence[str]) -> list[Contender]:
    """Stowage and, if a command is given, the scheduler that it starts."""
    if not command:
        return [OURS]
    return [OURS, Contender(Path(command[0]).name, tuple(command))]
