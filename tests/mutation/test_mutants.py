"""Mutants are small changes of one function, and a sample of them is stable."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.mutation import equivalents, mutants
from tests.mutation.coverage_map import CoverageMap, RecordedTest, functions_of
from tests.mutation.mutants import (
    Mutant,
    changed_lines,
    difference,
    mutants_of,
    mutated_code,
    mutated_source,
    source_files,
)
from tests.mutation.report import Row, rows_by, wilson_interval
from tests.mutation.results import Outcome, Result, Results
from tests.mutation.sampling import sample

TEXT = '''"""A module."""

DEFAULT = 3


class Ship:
    """Holds containers."""

    def __init__(self, decks: int = DEFAULT) -> None:
        """Start empty."""
        self.decks = decks
        self.names: list[str] = []

    @property
    def full(self) -> bool:
        """Whether nothing more fits."""
        return len(self.names) >= self.decks

    def load(self, name: str) -> None:
        if self.full:
            raise ValueError("full")
        self.names.append(name)
'''


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(mutants, "SOURCE", tmp_path)
    file = tmp_path / "state" / "ship.py"
    file.parent.mkdir()
    file.write_text(TEXT, encoding="utf-8")
    return file


def _changes(file: Path) -> dict[tuple[str, ...], Mutant]:
    return {tuple(difference(TEXT, mutated_source(each))): each for each in mutants_of(file)}


def test_conditions_calls_and_statements_are_changed_but_no_defaults_or_annotations(
    file: Path,
) -> None:
    assert list(_changes(file)) == [
        ("- self.decks = decks", "+ self.decks = None"),
        ("- self.names: list[str] = []", "+ self.names: list[str] = None"),
        (
            "- return len(self.names) >= self.decks",
            "+ return len(None) >= self.decks",
        ),
        ("- return len(self.names) >= self.decks", "+ return len(self.names) > self.decks"),
        ("- if self.full:", "+ if not self.full:"),
        ('- raise ValueError("full")', "+ pass"),
        ('- raise ValueError("full")', "+ raise ValueError(None)"),
        ('- raise ValueError("full")', '+ raise ValueError("XXfullXX")'),
        ("- self.names.append(name)", "+ pass"),
        ("- self.names.append(name)", "+ self.names.append(None)"),
    ]


def test_what_makes_no_difference_is_not_changed(file: Path) -> None:
    """Unused arguments, checks of lengths, and by how much a generation grows."""
    body = """
def pair(ship, names, sizes, deck):
    ship.generation += 1
    del deck, names[0]
    del deck
    del sizes
    return dict(zip(names, sizes, strict=True))
"""
    file.write_text(body, encoding="utf-8")
    changes = [difference(body, mutated_source(each)) for each in mutants_of(file)]
    assert [added for _, added in changes] == [
        "+ ship.generation = 1",
        "+ ship.generation -= 1",
        "+ pass",
        "+ del deck, names[1]",
        "+ return dict(None)",
        "+ return dict(zip(None, sizes, strict=True))",
        "+ return dict(zip(names, None, strict=True))",
        "+ return dict(zip(sizes, strict=True))",
        "+ return dict(zip(names, strict=True))",
    ]


def test_a_mutant_compiles_to_the_code_of_its_function(file: Path) -> None:
    chosen = _changes(file)["- if self.full:", "+ if not self.full:"]
    assert (chosen.function, chosen.package, chosen.lines) == ("Ship.load", "state", (20, 20))
    code = mutated_code(mutated_source(chosen), chosen)
    assert code is not None
    assert code.co_qualname == "Ship.load"
    scope: dict[str, type] = {}
    exec(TEXT, scope)
    ship = scope["Ship"](3)
    ship.load.__func__.__code__ = code
    with pytest.raises(ValueError, match="full"):
        ship.load("a")


def test_a_larger_sample_of_the_same_seed_begins_with_the_smaller_one(file: Path) -> None:
    every = mutants_of(file)
    assert sample(every, 9, seed=4)[:5] == sample(every, 5, seed=4)
    assert len(set(sample(every, 9, seed=4))) == 9
    assert sample(every, 9, seed=4) != sample(every, 9, seed=5)


def test_a_change_elsewhere_in_the_file_leaves_the_sample_as_it_was(file: Path) -> None:
    before = [each.key for each in sample(mutants_of(file), 10, seed=4)]
    text = TEXT.replace("self.decks = decks", "self.decks = decks\n        self.crew = 0")
    file.write_text(text, encoding="utf-8")
    mutants.changes_of.cache_clear()
    after = [each.key for each in sample(mutants_of(file), 99, seed=4)]
    assert [each for each in after if "__init__" not in each] == [
        each for each in before if "__init__" not in each
    ]


def test_the_quickest_tests_of_each_file_that_run_the_statement_come_first(file: Path) -> None:
    name = file.as_posix()
    both, raises = {name: {"Ship.load": "a"}}, {name: {"Ship.load": "6"}}
    tests = CoverageMap(
        [
            RecordedTest("a::slow", 2.0, both),
            RecordedTest("a::quick", 0.1, both),
            RecordedTest("a::quick too", 0.2, both),
            RecordedTest("b::quick", 0.25, both),
            RecordedTest("b::raises", 0.2, raises),
            RecordedTest("b::elsewhere", 0.1, {name: {"Ship.full": "6"}}),
        ]
    )
    appended = _changes(file)["- self.names.append(name)", "+ pass"]
    assert tests.tests_of(appended) == ["a::quick", "b::quick", "a::quick too", "a::slow"]
    negated = _changes(file)["- if self.full:", "+ if not self.full:"]
    assert set(tests.tests_of(negated)) == {*tests.tests_of(appended), "b::raises"}


def test_only_the_files_of_tests_that_run_a_mutated_function_are_loaded(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = file.as_posix()
    tests = CoverageMap(
        [
            RecordedTest("b.py::one", 0.1, {name: {"Ship.load": "2"}}),
            RecordedTest("a.py::two[a::b]", 0.1, {name: {"Ship.load": "8"}}),
            RecordedTest("b.py::three", 0.1, {name: {"Ship.load": "4", "Ship.full": "4"}}),
            RecordedTest("c.py::four", 0.1, {name: {"Ship.full": "6"}}),
        ]
    )
    load = [each for each in _changes(file).values() if each.function == "Ship.load"]
    monkeypatch.chdir(tmp_path)
    for test_file in ("a.py", "b.py", "c.py"):
        Path(test_file).touch()
    assert tests.files_of(load) == ["a.py", "b.py"]
    assert tests.files_of([]) == []
    Path("a.py").unlink()
    assert tests.files_of(load) == ["b.py"]


def test_tests_that_run_the_changed_line_come_before_those_that_run_its_statement(
    file: Path,
) -> None:
    name = file.as_posix()
    tests = CoverageMap(
        [
            RecordedTest("a::statement", 0.1, {name: {"Ship.load": "2"}}),
            RecordedTest("b::line", 2.0, {name: {"Ship.load": "6"}}),
            RecordedTest("c::elsewhere", 0.1, {name: {"Ship.load": "8"}}),
        ]
    )
    negated = _changes(file)["- if self.full:", "+ if not self.full:"]
    below = negated.lines[0] + 1
    in_two_lines = replace(negated, lines=(negated.lines[0], below))
    assert tests.tests_of(in_two_lines, (below, below)) == ["b::line", "a::statement"]
    assert tests.tests_of(in_two_lines) == ["a::statement", "b::line"]


@pytest.mark.parametrize(
    ("after", "want"),
    [("a b x d", (3, 3)), ("a b d", (3, 3)), ("a x c d", (2, 2)), ("a x y c d", (2, 2))],
)
def test_the_lines_that_differ_are_counted_in_the_text_before(
    after: str, want: tuple[int, int]
) -> None:
    before, after = ("\n".join(text.split()) for text in ("a b c d", after))
    assert changed_lines(before, after) == want


def test_the_last_result_of_a_mutant_counts_after_a_restart(file: Path, tmp_path: Path) -> None:
    kept = tmp_path / "results.jsonl"
    first, second, third = mutants_of(file)[:3]
    results = Results(kept)
    results.add(Result.of(first, [], Outcome.SURVIVED))
    results.add(Result.of(second, [], Outcome.KILLED, killer="test"))
    results.add(Result.of(first, [], Outcome.KILLED, killer="new test"))
    again = Results(kept)
    assert [each and each.killer for each in map(again.get, [first, second, third])] == [
        "new test",
        "test",
        None,
    ]


def test_equivalent_mutants_and_those_that_cannot_be_made_are_not_counted() -> None:
    outcomes = [Outcome.KILLED] * 60 + [Outcome.SURVIVED] * 4 + [Outcome.TIMEOUT] * 2
    outcomes += [Outcome.NOT_COVERED, Outcome.NOT_APPLICABLE]
    results = [
        Result(str(number), "state", "name", (), outcome) for number, outcome in enumerate(outcomes)
    ]
    state, everything = rows_by(lambda each: each.package, results, frozenset({"60"}))
    assert state == Row("state", 67, 1, 60, 2, 4)
    assert everything == Row("all", 67, 1, 60, 2, 4)
    assert state.share == "93.9 % (85.4 to 97.6)"
    assert wilson_interval(62, 66) == pytest.approx((0.8543, 0.9762), abs=1e-4)


@pytest.mark.parametrize(
    "listed", equivalents.read(), ids=lambda each: f"{each.file}:{each.function}"
)
def test_a_listed_mutant_changes_lines_that_are_still_there(
    listed: equivalents.Equivalent,
) -> None:
    assert listed.reason.strip()
    text = Path("scheduler/stowage", listed.file).read_text(encoding="utf-8")
    ((first, last),) = [span for name, *span in functions_of(text) if name == listed.function]
    lines = {line.strip() for line in text.splitlines()[first - 1 : last]}
    changed = [line[2:] for line in listed.change if line.startswith("- ")]
    assert changed
    assert lines.issuperset(changed)


def test_every_package_has_mutants() -> None:
    found = {file.relative_to(mutants.SOURCE).parts[0] for file in source_files()}
    assert found == set(mutants.PACKAGES)
