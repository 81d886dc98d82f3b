"""Makes mutants: small changes of one function each."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from types import CodeType
from typing import Any

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation import mutators

SOURCE = Path("scheduler/stowage")
PACKAGES = ("state", "queue", "framework", "engine", "plugins", "operator")

Operator = Callable[[Any], Iterable[cst.CSTNode]]

_CONDITIONS = (cst.Name, cst.Attribute, cst.Call)
_TYPING_CALLS = frozenset({"cast", "assert_never", "TypeVar"})
_DECIDED_BEFORE = (cst.Annotation, cst.Decorator, cst.Parameters)
_STATEMENTS = (cst.SimpleStatementLine, cst.BaseSmallStatement, cst.BaseCompoundStatement)


def remove_statement(node: cst.SimpleStatementLine) -> Iterator[cst.CSTNode]:
    """Replace a call made for its effect, a ``raise`` or a ``del`` by ``pass``."""
    if len(node.body) != 1:
        return
    statement = node.body[0]
    if isinstance(statement, cst.Expr):
        called = statement.value
        if isinstance(called, cst.Await):
            called = called.expression
        if not isinstance(called, cst.Call):
            return
    elif not isinstance(statement, cst.Raise | cst.Del):
        return
    yield node.with_changes(body=[cst.Pass()])


def negate_condition(node: cst.If | cst.While) -> Iterator[cst.CSTNode]:
    """Negate a condition that mutmut leaves alone: a name, an attribute or a call."""
    if isinstance(node.test, _CONDITIONS):
        negated = cst.UnaryOperation(operator=cst.Not(), expression=node.test)
        yield node.with_changes(test=negated)


def lengthen_string(node: cst.BaseString) -> Iterator[cst.CSTNode]:
    """Change a string once; mutmut also changes it to upper and to lower case."""
    yield from list(mutators.operator_string(node))[:1]


OPERATORS: tuple[tuple[type, str, Operator], ...] = (
    *(
        (kind, operator.__name__.removeprefix("operator_"), operator)
        for kind, operator in mutators.mutation_operators
        if operator is not mutators.operator_string
    ),
    (cst.BaseString, "string", lengthen_string),
    (cst.SimpleStatementLine, "remove_statement", remove_statement),
    (cst.If, "negate_condition", negate_condition),
    (cst.While, "negate_condition", negate_condition),
)


@dataclass(frozen=True)
class Mutant:
    """A change of one function, not yet written out.

    Attributes:
        file: The file, relative to the checkout.
        function: The outermost function or method that holds the change.
        operator: The name of the operator that makes the change.
        ordinal: Which of the changes of this operator in this function.
        first_line: The first line of the function, decorators included.
        lines: The first and last line of the statement that is changed.
    """

    file: str
    function: str
    operator: str
    ordinal: int
    first_line: int
    lines: tuple[int, int]

    @property
    def package(self) -> str:
        """The package of the scheduler that holds the file."""
        return Path(self.file).relative_to(SOURCE).parts[0]

    @property
    def key(self) -> str:
        """Identifies the mutant as long as its function does not change."""
        return f"{self.file}:{self.function}:{self.operator}:{self.ordinal}"


class _Collector(cst.CSTVisitor):
    """Collects each change of a module, with the function and the statement around it."""

    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self, file: str) -> None:
        super().__init__()
        self.found: list[tuple[Mutant, cst.CSTNode, cst.CSTNode]] = []
        self._file = file
        self._classes: list[str] = []
        self._functions: list[cst.FunctionDef] = []
        self._statements: list[tuple[int, int]] = []
        self._ordinals: Counter[tuple[str, int, str]] = Counter()
        self._idle: set[cst.CSTNode] = set()

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Collect the changes of a node; skip what is decided before a test runs."""
        if isinstance(node, _DECIDED_BEFORE) or _is_typing_call(node) or node in self._idle:
            return False
        self._idle.update(_length_checks(node))
        self._idle.update(_steps(node))
        if isinstance(node, cst.FunctionDef):
            self._functions.append(node)
        elif isinstance(node, cst.ClassDef) and not self._functions:
            self._classes.append(node.name.value)
        if isinstance(node, _STATEMENTS):
            self._statements.append(self._lines(node))
        if self._functions:
            self._collect(node)
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:
        """Forget the function, class or statement that ends here."""
        if isinstance(original_node, _DECIDED_BEFORE) or _is_typing_call(original_node):
            return
        if isinstance(original_node, _STATEMENTS):
            self._statements.pop()
        if isinstance(original_node, cst.FunctionDef):
            self._functions.pop()
        elif isinstance(original_node, cst.ClassDef) and not self._functions:
            self._classes.pop()

    def _collect(self, node: cst.CSTNode) -> None:
        outermost = self._functions[0]
        function = ".".join([*self._classes, outermost.name.value])
        first = [*outermost.decorators, outermost][0]
        first_line = self._position(first).start.line
        for kind, operator, changes in OPERATORS:
            if isinstance(node, kind):
                for changed in changes(node):
                    counted = (function, first_line, operator)
                    ordinal = self._ordinals[counted]
                    self._ordinals[counted] += 1
                    if _changes_nothing(node, changed):
                        continue  # after it was numbered, so that the others keep their keys
                    lines = self._lines(node) if not self._statements else self._statements[-1]
                    mutant = Mutant(self._file, function, operator, ordinal, first_line, lines)
                    self.found.append((mutant, node, changed))

    def _position(self, node: cst.CSTNode) -> cst.metadata.CodeRange:
        position: cst.metadata.CodeRange = self.get_metadata(PositionProvider, node)
        return position

    def _lines(self, node: cst.CSTNode) -> tuple[int, int]:
        """The lines of a statement; of a compound one, those before its body."""
        position = self._position(node)
        first, last = position.start.line, position.end.line
        body = getattr(node, "body", None)
        if isinstance(node, cst.BaseCompoundStatement) and isinstance(body, cst.CSTNode):
            last = max(first, self._position(body).start.line - 1)
        return first, last


def _is_typing_call(node: cst.CSTNode) -> bool:
    """Whether this is a call that does nothing at run time."""
    called = node.func if isinstance(node, cst.Call) else None
    return isinstance(called, cst.Name) and called.value in _TYPING_CALLS


def _length_checks(node: cst.CSTNode) -> list[cst.Arg]:
    """The argument `strict` of a ``zip``, which does nothing while the lengths are equal."""
    if not (isinstance(node, cst.Call) and isinstance(node.func, cst.Name)):
        return []
    if node.func.value != "zip":
        return []
    return [each for each in node.args if each.keyword and each.keyword.value == "strict"]


def _steps(node: cst.CSTNode) -> list[cst.CSTNode]:
    """The number by which a generation grows: generations are only compared with each other."""
    if not (isinstance(node, cst.AugAssign) and isinstance(node.operator, cst.AddAssign)):
        return []
    name = node.target.attr if isinstance(node.target, cst.Attribute) else node.target
    is_generation = isinstance(name, cst.Name) and name.value.endswith("generation")
    return [node.value] if is_generation else []


def _changes_nothing(node: cst.CSTNode, changed: cst.CSTNode) -> bool:
    """Whether a change is equivalent wherever it is made.

    It is if names are no longer deleted, which says that arguments are unused, or if `zip` no
    longer checks the lengths.
    """
    if isinstance(node, cst.SimpleStatementLine) and isinstance(node.body[0], cst.Del):
        deleted = node.body[0].target
        names = [each.value for each in getattr(deleted, "elements", ())] or [deleted]
        return all(isinstance(name, cst.Name) for name in names)
    if not (isinstance(node, cst.Call) and isinstance(changed, cst.Call) and _length_checks(node)):
        return False
    return all(
        any(one.value.deep_equals(other.value) for other in changed.args)
        for one in node.args
        if one not in _length_checks(node)
    )


@lru_cache(maxsize=4)
def changes_of(file: str) -> tuple[cst.Module, list[tuple[Mutant, cst.CSTNode, cst.CSTNode]]]:
    """The tree of a file, and each mutant with the node that it changes and the changed one."""
    wrapper = MetadataWrapper(cst.parse_module(Path(file).read_text(encoding="utf-8")))
    collector = _Collector(file)
    wrapper.visit(collector)
    return wrapper.module, collector.found


def mutants_of(file: Path) -> list[Mutant]:
    """Every mutant of a file, in the order of the text."""
    return [mutant for mutant, _, _ in changes_of(file.as_posix())[1]]


def mutated_source(mutant: Mutant) -> str:
    """The text of the mutant's file with the change.

    Raises:
        LookupError: The file has no such mutant any more.
    """
    module, found = changes_of(mutant.file)
    for each, original, changed in found:
        if each == mutant:
            mutated = module.deep_replace(original, changed)
            assert isinstance(mutated, cst.Module)
            return mutated.code
    raise LookupError(mutant.key)


def difference(before: str, after: str) -> list[str]:
    """The lines that differ, each with its sign, without indentation or context."""
    compared = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    changed = list(compared)[2:]  # without the names of the files
    return [f"{line[0]} {line[1:].strip()}" for line in changed if line[0] != "@"]


def changed_lines(before: str, after: str) -> tuple[int, int]:
    """The first and the last line of `before` that differ."""
    old, new = before.splitlines(), after.splitlines()
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
    ends = zip(reversed(old[same:]), reversed(new[same:]), strict=False)
    same_end = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], ends))
    return same + 1, max(same + 1, len(old) - same_end)


def mutated_code(source: str, mutant: Mutant) -> CodeType | None:
    """The code object of the mutant's function; none if the text does not compile."""
    try:
        module = compile(source, str(Path(mutant.file).resolve()), "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return None
    for code in _nested(module):
        if code.co_qualname == mutant.function and code.co_firstlineno == mutant.first_line:
            return code
    return None


def _nested(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _nested(constant)


def source_files() -> list[Path]:
    """The files of the mutated packages."""
    return [file for package in PACKAGES for file in sorted((SOURCE / package).rglob("*.py"))]


def module_of(file: Path) -> str:
    """The name by which a source file is imported."""
    parts = file.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")
