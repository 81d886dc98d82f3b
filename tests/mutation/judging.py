"""Judges mutants: loads all tests once, then forks a process for each mutant.

The process takes the mutant's code object into the loaded function and runs the tests that cover
it until one fails: those first that killed another mutant of the same function, then quick ones
before slow ones. A test has a limit of CPU time, for a mutant may loop for ever, and one of
waiting, for a mutant may wait for ever. A test that failed must pass without the mutant, in a
process of its own, before its judgement counts.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import shutil
import signal
import tempfile
import time
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

from tests.mutation.coverage_map import CoverageMap
from tests.mutation.mutants import (
    Mutant,
    changed_lines,
    difference,
    module_of,
    mutated_code,
    mutated_source,
    source_files,
)
from tests.mutation.results import Outcome, Result, Results

_CPU_LIMIT_S = 3.0
_WAITING_LIMIT_S = 60.0
_SLOWER = 10.0
"""How many times its recorded time a test may take, beyond the limits above."""

_CACHE = type(lru_cache(lambda: None))


@dataclass
class Trial:
    """One forked process: tests that run with a mutant, or without one as a control."""

    pid: int
    pipe: int
    mutant: Mutant
    change: list[str]
    tests: list[str]
    control: str | None = None
    started: float = field(default_factory=time.monotonic)
    said: bytes = b""
    current: int = -1
    deadline: float = float("inf")
    too_slow: bool = False


class Judge:
    """A plugin of pytest that judges mutants in place of running the tests."""

    def __init__(
        self,
        mutants: Iterable[Mutant],
        coverage_map: CoverageMap,
        results: Results,
        *,
        workers: int,
        budget_s: float,
    ) -> None:
        # File by file, for a file is parsed once for all its mutants in a row.
        self._waiting = deque(sorted(mutants, key=lambda each: (each.file, each.lines)))
        self._map = coverage_map
        self._results = results
        self._workers = workers
        self._budget_s = budget_s
        self._items: dict[str, pytest.Item] = {}
        self._functions: dict[tuple[str, str, int], list[FunctionType]] = defaultdict(list)
        self._caches: list[Any] = []
        self._running: dict[int, Trial] = {}
        self._sound: set[str] = set()
        self._unsound: set[str] = set()
        self._killers: dict[tuple[str, str], list[str]] = defaultdict(list)
        self._suspended: dict[str, list[Trial]] = defaultdict(list)
        self._failed = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Judge every mutant."""
        self._items = {item.nodeid: item for item in session.items}
        self._index()
        gc.collect()
        gc.freeze()
        with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
            while self._waiting or self._running:
                while self._waiting and len(self._running) < self._workers:
                    self._start(self._waiting.popleft(), Path(folder))
                self._listen(Path(folder))
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note in the forked process that a test failed."""
        self._failed = self._failed or report.failed

    def _index(self) -> None:
        """Find every function of the scheduler by its place, and every cache of answers."""
        for file in source_files():
            import_module(module_of(file))
        gc.unfreeze()  # what was frozen is not among the objects
        for each in gc.get_objects():
            if isinstance(each, FunctionType):
                code = each.__code__
                place = code.co_filename, code.co_qualname, code.co_firstlineno
                self._functions[place].append(each)
            elif isinstance(each, _CACHE):
                self._caches.append(each)

    def _start(self, mutant: Mutant, folder: Path) -> None:
        """Fork a process for the mutant, unless nothing can judge it."""
        started = time.monotonic()
        before = Path(mutant.file).read_text(encoding="utf-8")
        source = mutated_source(mutant)
        change = difference(before, source)
        code = mutated_code(source, mutant)
        place = str(Path(mutant.file).resolve()), mutant.function, mutant.first_line
        functions = self._functions.get(place, [])
        covering = self._map.tests_of(mutant, changed_lines(before, source))
        covering = [each for each in covering if each in self._items]
        killers = self._killers[mutant.file, mutant.function]
        covering = sorted(covering, key=lambda each: each not in killers)  # a stable order
        tests = self._within_budget(each for each in covering if each not in self._unsound)
        if code is None or any(not _fits(each, code) for each in functions):
            self._results.add(Result.of(mutant, change, Outcome.NOT_APPLICABLE))
        elif not tests:
            self._results.add(Result.of(mutant, change, Outcome.NOT_COVERED))
        else:
            assert functions, mutant.key
            trial = Trial(-1, -1, mutant, change, tests, started=started)
            self._fork(trial, folder, [(each, code) for each in functions])

    def _within_budget(self, tests: Iterable[str]) -> list[str]:
        """The first tests that together take no more than the budget, and at least one."""
        chosen: list[str] = []
        left = self._budget_s
        for test in tests:
            left -= self._map.seconds[test]
            if chosen and left < 0:
                break
            chosen.append(test)
        return chosen

    def _fork(
        self, trial: Trial, folder: Path, changes: Sequence[tuple[FunctionType, CodeType]]
    ) -> None:
        listening, telling = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.close(listening)
                self._live(trial.tests, telling, folder, changes)
            finally:
                os._exit(1)
        os.close(telling)
        trial.pid, trial.pipe = pid, listening
        trial.deadline = time.monotonic() + _WAITING_LIMIT_S
        self._running[listening] = trial

    def _live(
        self,
        tests: Sequence[str],
        telling: int,
        folder: Path,
        changes: Sequence[tuple[FunctionType, CodeType]],
    ) -> None:
        """Run the tests in the forked process; tell each that starts, and the first that fails."""
        os.setpgid(0, 0)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        own = folder / str(os.getpid())
        own.mkdir()
        os.environ["PYTEST_DEBUG_TEMPROOT"] = str(own)
        for function, code in changes:
            function.__code__ = code
        for cache in self._caches:
            if getattr(cache, "__module__", "").startswith("stowage"):
                cache.cache_clear()
        items = [self._items[test] for test in tests]
        for item, following in zip(items, [*items[1:], None], strict=True):
            os.write(telling, b">")
            signal.setitimer(
                signal.ITIMER_PROF, _CPU_LIMIT_S + _SLOWER * self._map.seconds[item.nodeid]
            )
            item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
            if self._failed:
                os.write(telling, b"F")
                os._exit(0)
        os.write(telling, b"S")
        os._exit(0)

    def _listen(self, folder: Path) -> None:
        """Hear what the processes tell, and end those that take too long."""
        ready, _, _ = select.select(list(self._running), [], [], 1.0)
        for pipe in ready:
            trial = self._running[pipe]
            said = os.read(pipe, 4096)
            trial.said += said
            if said:
                trial.current = trial.said.count(b">") - 1
                recorded = self._map.seconds[trial.tests[trial.current]]
                trial.deadline = time.monotonic() + _WAITING_LIMIT_S + _SLOWER * recorded
            else:
                self._end(trial, folder)
        for trial in list(self._running.values()):
            if time.monotonic() > trial.deadline:
                trial.too_slow = True
                os.killpg(trial.pid, signal.SIGKILL)
                trial.deadline = float("inf")

    def _end(self, trial: Trial, folder: Path) -> None:
        """Take the outcome of a process that ended."""
        del self._running[trial.pipe]
        os.close(trial.pipe)
        _, status = os.waitpid(trial.pid, 0)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(trial.pid, signal.SIGKILL)  # what the tests left running
        shutil.rmtree(folder / str(trial.pid), ignore_errors=True)
        outcome = _outcome(trial, status)
        if trial.control is not None:
            self._judge_the_test(trial.control, sound=outcome is Outcome.SURVIVED)
        elif outcome is Outcome.SURVIVED:
            self._record(trial, outcome)
        else:
            self._believe(trial, outcome, folder)

    def _believe(self, trial: Trial, outcome: Outcome, folder: Path) -> None:
        """Record a kill if its test passes without the mutant."""
        killer = trial.tests[max(trial.current, 0)]
        if killer in self._unsound:
            self._waiting.appendleft(trial.mutant)
        elif killer in self._sound:
            self._record(trial, outcome, killer)
        else:
            self._suspended[killer].append(trial)
            trial.too_slow = outcome is Outcome.TIMEOUT
            if len(self._suspended[killer]) == 1:
                control = Trial(-1, -1, trial.mutant, [], [killer], control=killer)
                self._fork(control, folder, [])

    def _judge_the_test(self, test: str, *, sound: bool) -> None:
        (self._sound if sound else self._unsound).add(test)
        for trial in self._suspended.pop(test):
            if sound:
                outcome = Outcome.TIMEOUT if trial.too_slow else Outcome.KILLED
                self._record(trial, outcome, test)
            else:
                self._waiting.appendleft(trial.mutant)

    def _record(self, trial: Trial, outcome: Outcome, killer: str | None = None) -> None:
        seconds = time.monotonic() - trial.started
        if killer is not None and outcome is Outcome.KILLED:
            self._killers[trial.mutant.file, trial.mutant.function].append(killer)
        self._results.add(
            Result.of(
                trial.mutant,
                trial.change,
                outcome,
                killer=killer,
                num_tests=trial.current + 1,
                seconds=round(seconds, 2),
            )
        )


def _outcome(trial: Trial, status: int) -> Outcome:
    if trial.said.endswith(b"S"):
        return Outcome.SURVIVED
    slow = trial.too_slow or (
        os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGPROF, signal.SIGKILL)
    )
    return Outcome.TIMEOUT if slow and not trial.said.endswith(b"F") else Outcome.KILLED


def _fits(function: FunctionType, code: CodeType) -> bool:
    """Can the function take the code? It cannot if a variable of its class is no longer used."""
    return len(function.__code__.co_freevars) == len(code.co_freevars)
