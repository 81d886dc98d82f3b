"""Expressions about variables other than ``device``, such as the rules of custom resources."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stowage.cel.checking.checker import check
from stowage.cel.checking.environment import Declarations
from stowage.cel.checking.validators import validate
from stowage.cel.errors import CelCompileError
from stowage.cel.evaluation.planner import Program, plan_program, run_program
from stowage.cel.signatures.types import Type, is_dyn
from stowage.cel.syntax.parser import parse
from stowage.cel.syntax.tree import Ident, Node, children
from stowage.cel.values.containers import Value


class Expression:
    """A compiled expression. It has no state, so threads may share it.

    Attributes:
        text: the expression.
        names: the variables that it reads.
    """

    __slots__ = ("_program", "names", "text")

    def __init__(self, text: str, program: Program, names: frozenset[str]) -> None:
        self.text = text
        self.names = names
        self._program = program

    def evaluate(self, values: Sequence[Value]) -> tuple[Value, int]:
        """Return the result and its cost; `values` are in the order of the declared variables.

        Raises:
            CelRuntimeError: the evaluation failed, or cost more than the limit.
        """
        return run_program(self._program, values)


def compile_expression(text: str, declarations: Declarations, result: Type) -> Expression:
    """Parse, check and plan an expression.

    Args:
        text: The expression.
        declarations: Its variables and the fields of their types.
        result: The type that it must have.

    Raises:
        CelCompileError: it is not valid, or of another type.

    Examples:
        >>> from stowage.cel.signatures.types import BOOL, INT
        >>> rule = compile_expression("self > 1", Declarations({"self": INT}), BOOL)
        >>> rule.evaluate([2])
        (True, 2)
    """
    try:
        tree = parse(text)
        found = check(tree, text, declarations)
        validate(tree, text)
        if found != result and not is_dyn(found):
            raise CelCompileError(f"must evaluate to a {result}")
        program = plan_program(tree, tuple(declarations.variables))
        return Expression(text, program, frozenset(_names_in(tree)))
    except RecursionError:
        raise CelCompileError("compilation failed: expression is nested too deeply") from None


def _names_in(tree: Node) -> Iterator[str]:
    """The names in an expression; those of loop variables, too."""
    nodes = [tree]
    while nodes:
        node = nodes.pop()
        if isinstance(node, Ident):
            yield node.name
        nodes += children(node)
