"""Records which tests run which lines of a function, and how long each test takes.

Lines count from the first line of their function, so that a change elsewhere in the file leaves the
record valid.
"""

from __future__ import annotations

import ast
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import coverage
import msgspec
import pytest

from tests.mutation.mutants import SOURCE, Mutant, source_files

_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


def functions_of(text: str) -> list[tuple[str, int, int]]:
    """Name, first and last line of each outermost function and method."""
    found: list[tuple[str, int, int]] = []

    def visit(body: Sequence[ast.stmt], within: str) -> None:
        for node in body:
            if isinstance(node, _FUNCTION):
                first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                found.append((within + node.name, first, node.end_lineno or first))
            elif isinstance(node, ast.ClassDef):
                visit(node.body, f"{within}{node.name}.")

    visit(ast.parse(text).body, "")
    return found


class RecordedTest(msgspec.Struct, frozen=True):
    """What one test ran.

    Attributes:
        test: The test's node id.
        seconds: CPU time of the test with its fixtures, measured with coverage on.
        ran: File -> function -> the lines that ran, a bit each, as hexadecimal digits.
    """

    test: str
    seconds: float
    ran: dict[str, dict[str, str]]


class CoverageRecorder:
    """A plugin of pytest that records the lines of every test that passes."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._coverage = coverage.Coverage(
            data_file=None, config_file=False, source=[str(SOURCE.resolve())], messages=False
        )
        self._seconds: dict[str, float] = {}
        self._failed: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Iterator[None]:
        """Measure all tests, then write down what they ran."""
        self._coverage.start()
        try:
            return (yield)
        finally:
            self._coverage.stop()
            self._write()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Count the lines and the time of this test as its own."""
        self._coverage.switch_context(item.nodeid)
        started = time.process_time()
        try:
            return (yield)
        finally:
            self._seconds[item.nodeid] = time.process_time() - started

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Leave out tests that do not pass: they would judge nothing."""
        if not report.passed:
            self._failed.add(report.nodeid)

    def _write(self) -> None:
        ran: dict[str, dict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
        data = self._coverage.get_data()
        for file in source_files():
            contexts = data.contexts_by_lineno(str(file.resolve()))
            for function, first, last in functions_of(file.read_text(encoding="utf-8")):
                for line in range(first, last + 1):
                    for test in contexts.get(line, ()):
                        lines = ran[test][file.as_posix()]
                        lines[function] = lines.get(function, 0) | 1 << (line - first)
        with self._file.open("ab") as out:
            for test, seconds in self._seconds.items():
                if test not in self._failed:
                    masks = {
                        file: {function: f"{mask:x}" for function, mask in functions.items()}
                        for file, functions in ran[test].items()
                    }
                    out.write(msgspec.json.encode(RecordedTest(test, seconds, masks)) + b"\n")


class CoverageMap:
    """Answers which tests run the lines of a mutant, and in which order they are to judge it."""

    def __init__(self, tests: Iterable[RecordedTest]) -> None:
        latest = {each.test: each for each in tests}
        self.seconds = {each.test: each.seconds for each in latest.values()}
        self._ran: dict[tuple[str, str], list[tuple[str, int]]] = defaultdict(list)
        for each in sorted(latest.values(), key=lambda each: each.seconds):
            for file, functions in each.ran.items():
                for function, mask in functions.items():
                    self._ran[file, function].append((each.test, int(mask, 16)))

    @classmethod
    def read(cls, file: Path) -> CoverageMap:
        """Read what a recorder wrote; of a test that was recorded again, its last record."""
        with file.open("rb") as lines:
            return cls(msgspec.json.decode(line, type=RecordedTest) for line in lines)

    def files_of(self, mutants: Iterable[Mutant]) -> list[str]:
        """The files of the tests that run any line of the functions of these mutants.

        A file that was deleted since the record was written is left out.
        """
        functions = {(each.file, each.function) for each in mutants}
        running = {test for place in functions for test, _ in self._ran.get(place, [])}
        files = {test.partition("::")[0] for test in running}
        return sorted(file for file in files if Path(file).exists())

    def tests_of(self, mutant: Mutant, changed: tuple[int, int] | None = None) -> list[str]:
        """The tests that run the changed statement, quickest first.

        Those that run the changed lines themselves come before all others: a statement may hold a
        lambda that few tests call. The time of a test includes those before it in its file, for
        tests of one file ask similar questions: the quickest of each file come first.

        Args:
            mutant: The mutant.
            changed: The first and last line that differ; None for those of the statement.
        """
        statement = _mask(mutant, mutant.lines)
        lines = statement if changed is None else _mask(mutant, changed)
        recorded = self._ran.get((mutant.file, mutant.function), [])
        running = [test for test, mask in recorded if mask & lines]
        known = set(running)
        others = [test for test, mask in recorded if mask & statement and test not in known]
        return [*self._in_order(running), *self._in_order(others)]

    def _in_order(self, tests: Iterable[str]) -> list[str]:
        spent: defaultdict[str, float] = defaultdict(float)
        when = {}
        for test in tests:
            file = test.partition("::")[0]
            spent[file] += self.seconds[test]
            when[test] = spent[file]
        return sorted(when, key=when.__getitem__)


def _mask(mutant: Mutant, lines: tuple[int, int]) -> int:
    """A bit for each of these lines, counted from the first line of the function."""
    first, last = (line - mutant.first_line for line in lines)
    return (1 << (last + 1)) - (1 << first)
