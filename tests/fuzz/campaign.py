"""Runs a target with many inputs: counts outcomes, times each step, watches the memory.

Chosen over atheris, which guides by coverage: its instrumentation changes the time of a step,
which is judged here, and an input is made again from a corpus on disk instead of from a seed.
"""

from __future__ import annotations

import gc
import os
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, Protocol

from tests.fuzz.shrinking import shrunk

MAX_STEP_S = 0.1
"""CPU time of a step; one that takes more is measured again."""
NUM_MEASURED_AGAIN = 3
MAX_GROWTH_BYTES = 48 * 2**20
"""Growth of the resident memory after the first fifth of the inputs, which fills the caches."""
MAX_KEPT_BLOCKS = 500
"""Blocks of memory that the same inputs may leave behind when they are run once more."""
_NUM_REPEATED = 50
_MAX_SHOWN = 20
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Target(Protocol):
    """Something that takes inputs.

    Attributes:
        name: Its name on the command line.
    """

    name: str

    def make(self, rng: Random) -> Any:
        """An input: text, bytes, or a tuple of such."""
        ...

    def run(self, given: Any) -> str:
        """Run one step; returns its outcome, and raises an exception if a rule is broken."""
        ...

    def close(self) -> None:
        """Release what the target holds."""
        ...


class Finding(Exception):  # noqa: N818 - it names the finding
    """What an input should not lead to."""


class Campaign:
    """Inputs of one target, from one seed.

    Args:
        target: The target.
        seed: Input number N is made of the seed, the target's name and N.
        tell: Receives a text for each finding.

    Attributes:
        outcomes: Outcome -> number of inputs.
        num_findings: Number of findings.
        slowest: CPU seconds of the slowest step, and its input.
        growth_bytes: Growth of the resident memory since the first fifth of the inputs.
    """

    def __init__(self, target: Target, seed: int, tell: Callable[[str], None]) -> None:
        self.target = target
        self.outcomes: Counter[str] = Counter()
        self.num_findings = 0
        self.slowest: tuple[float, str] = (0.0, "")
        self.growth_bytes = 0
        self._seed = seed
        self._tell = tell
        self._seen: set[str] = set()

    def input(self, number: int) -> Any:
        """The input of a number."""
        return self.target.make(Random(f"{self._seed}/{self.target.name}/{number}"))

    def run(self, num_inputs: int) -> None:
        """Run the inputs, then some of them again to see what they leave in memory."""
        start_bytes = 0
        for number in range(num_inputs):
            if number == num_inputs // 5:
                gc.collect()
                start_bytes = resident_bytes()
            self._step(number)
        gc.collect()
        self.growth_bytes = max(0, resident_bytes() - start_bytes)
        if self.growth_bytes > MAX_GROWTH_BYTES:
            self._found("memory", f"the process grew by {self.growth_bytes / 2**20:.0f} MiB")
        if not self.num_findings:
            self._repeat(range(min(num_inputs, _NUM_REPEATED)))

    def lines(self) -> Iterator[str]:
        """The summary."""
        for outcome, num in sorted(self.outcomes.items()):
            yield f"{self.target.name:16} {outcome:12} {num:>9,}"
        slowest_s, given = self.slowest
        yield (
            f"{self.target.name:16} slowest step {slowest_s * 1e3:.1f} ms, grew by "
            f"{self.growth_bytes / 2**20:.1f} MiB; slowest input {given[:100]}"
        )

    def _step(self, number: int) -> None:
        given = self.input(number)
        started = time.process_time()
        try:
            outcome = self.target.run(given)
        except Exception as error:
            self.outcomes["FAILED"] += 1
            self._failed(number, given, error)
            return
        self.outcomes[outcome] += 1
        taken_s = time.process_time() - started
        if taken_s > MAX_STEP_S:
            taken_s = min(taken_s, *(self._time(given) for _ in range(NUM_MEASURED_AGAIN)))
            if taken_s > MAX_STEP_S:
                self._found("time", f"input {number} takes {taken_s * 1e3:.0f} ms: {given!r:.2000}")
        if taken_s > self.slowest[0]:
            self.slowest = (taken_s, repr(given))

    def _failed(self, number: int, given: Any, error: Exception) -> None:
        kind = _kind(error)
        if kind in self._seen:
            self.num_findings += 1
            return
        smallest = shrunk(given, lambda smaller: _kind(self._error_of(smaller)) == kind)
        text = "".join(traceback.format_exception(error, limit=-6))
        self._found(kind, f"input {number}, made smaller: {smallest!r:.2000}\n{text}")

    def _error_of(self, given: Any) -> Exception | None:
        try:
            self.target.run(given)
        except Exception as error:
            return error
        return None

    def _found(self, kind: str, text: str) -> None:
        self.num_findings += 1
        if kind not in self._seen and len(self._seen) < _MAX_SHOWN:
            self._tell(f"--- {self.target.name}, seed {self._seed}: {text}")
        if kind != "time":
            self._seen.add(kind)

    def _time(self, given: Any) -> float:
        started = time.process_time()
        self._error_of(given)
        return time.process_time() - started

    def _repeat(self, numbers: range) -> None:
        """Run the same inputs again and again: what they leave behind must not grow."""
        kept = []
        for _ in range(3):
            for number in numbers:
                self._error_of(self.input(number))
            gc.collect()
            kept.append(sys.getallocatedblocks())
        if min(after - before for before, after in pairwise(kept)) > MAX_KEPT_BLOCKS:
            self._found("blocks", f"the same {len(numbers)} inputs leave more each time: {kept}")


def _kind(error: Exception | None) -> str:
    """What an error is about: its type, and the line of code that raised it."""
    if error is None:
        return ""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = "" if trace is None else f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
    return f"{type(error).__name__} {place}"


def resident_bytes() -> int:
    """The memory of this process that is in RAM; 0 where the system does not say."""
    if sys.platform != "linux":
        return 0
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE_BYTES
