"""Experiments that cost nothing, and some that misbehave."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import msgspec

from stowage.analysis.simulation.result import ExperimentResult, Series


def make_result(
    policy: str = "p",
    seed: int = 1,
    trace: str = "t",
    reasons: dict[str, int] | None = None,
    **metrics: float,
) -> ExperimentResult:
    """A result with one short series."""
    series = [Series("pending", "pods", [0.0, 10.0], [0.0, float(seed)])]
    return ExperimentResult(trace, policy, seed, metrics or {"bound": 1.0}, series, reasons or {})


class Tiny(msgspec.Struct, frozen=True):
    """The seed decides the only metric; counts its runs in a file, if asked to."""

    seed: int
    policy: str = "p"
    content: str = "same"
    runs: Path | None = None

    @property
    def key(self) -> str:
        return f"t/{self.policy}/{self.seed}"

    @property
    def fingerprint(self) -> str:
        return self.content

    def run(self) -> ExperimentResult:
        if self.runs is not None:
            with self.runs.open("a") as runs:
                runs.write(f"{self.seed}\n")
        return make_result(self.policy, self.seed, bound=float(self.seed * 10))


class Raising(Tiny, frozen=True):
    """A plugin of the policy raises."""

    def run(self) -> ExperimentResult:
        raise ZeroDivisionError("in the plugin")


class KillsItsWorker(Tiny, frozen=True):
    """Kills the process it runs in, as many times as there are no files yet."""

    marks: Path = Path()
    times: int = 1

    def run(self) -> ExperimentResult:
        for number in range(self.times):
            mark = self.marks / str(number)
            if not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
        return super().run()
