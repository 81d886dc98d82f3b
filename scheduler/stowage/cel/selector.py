"""`compile_selector`: from the text of a CEL selector to a `Selector`."""

from __future__ import annotations

from stowage.cel.checking.checker import check
from stowage.cel.checking.environment import Declarations, device_declarations
from stowage.cel.checking.validators import validate
from stowage.cel.device import Device
from stowage.cel.errors import CelCompileError, CelRuntimeError
from stowage.cel.evaluation.planner import Program, plan_program, run_program
from stowage.cel.functions.conversions import type_name
from stowage.cel.reads import AttributeRead, attribute_reads
from stowage.cel.signatures.types import ANY, BOOL
from stowage.cel.syntax.parser import parse
from stowage.cel.syntax.tree import Node
from stowage.cel.values.semver import Semver


class Selector:
    """A compiled CEL selector. It has no state, so threads may share it.

    Attributes:
        expression: the text.
        reads: the attributes that it can read, see `attribute_reads`.
    """

    __slots__ = ("_program", "expression", "reads")

    def __init__(
        self, expression: str, program: Program, reads: tuple[AttributeRead, ...] | None
    ) -> None:
        self.expression = expression
        self.reads = reads
        self._program = program

    def matches(self, device: Device) -> bool:
        """Return whether the expression is true for `device`.

        Raises:
            CelRuntimeError: the evaluation failed, or cost more than the limit.
        """
        return self.evaluate(device)[0]

    def evaluate(self, device: Device) -> tuple[bool, int]:
        """`matches`, and the cost of the evaluation as kube-scheduler counts it."""
        result, cost = run_program(self._program, [device.variable])
        if result is True or result is False:
            return result, cost
        raise CelRuntimeError(
            f"CEL result of type {type_name(result)} could not be converted to bool"
            f"{_WHY_NOT_BOOL.get(type(result), '')}"
        )


_WHY_NOT_BOOL = {
    str: ": unsupported native conversion from string to 'bool'",
    int: ": unsupported type conversion from 'int' to bool",
    Semver: ": type conversion error from 'Semver' to 'bool'",
}
"""What the expression library says about the types of attributes."""


def compile_selector(expression: str) -> Selector:
    """Parse, check and plan a selector.

    Raises:
        CelCompileError: kube-scheduler refuses the expression.

    Examples:
        >>> from stowage.cel import Device
        >>> selector = compile_selector('device.attributes["dra.example.com"].model == "a100"')
        >>> selector.matches(Device("dra.example.com", {"model": "a100"}))
        True
    """
    try:
        tree = typed_tree(expression, device_declarations())
        return Selector(expression, plan_program(tree), attribute_reads(tree))
    except RecursionError:
        raise CelCompileError("compilation failed: expression is nested too deeply") from None


def typed_tree(expression: str, declarations: Declarations) -> Node:
    """Parse and check a selector; return its tree, with the types of all nodes.

    Args:
        expression: The text.
        declarations: What it may name.

    Raises:
        CelCompileError: kube-scheduler refuses the expression.
    """
    tree = parse(expression)
    found = check(tree, expression, declarations)
    validate(tree, expression)
    if found not in (BOOL, ANY):
        message = f"must evaluate to bool or the unknown type, not {found.full_name}"
        raise CelCompileError(message)
    return tree
