"""Estimates the worst cost of expressions, by which the API server refuses costly ones.

`estimator` walks the tree of an expression with its types. Sizes and costs of values that nobody
knows are the greatest of 64 bits, so such an expression is refused: ``a != b`` of quantities,
``type(x) == int``. The scheduler does not estimate, and does not import this package.
"""

from stowage.cel.checking.checker import check
from stowage.cel.checking.environment import NEW_FUNCTIONS, Declarations, device_declarations
from stowage.cel.errors import CelCompileError
from stowage.cel.estimation.device_sizes import device_size
from stowage.cel.estimation.estimator import worst_cost
from stowage.cel.estimation.tracked_sizes import DeclaredSize
from stowage.cel.selector import typed_tree
from stowage.cel.syntax.parser import parse


def worst_selector_cost(expression: str) -> int:
    """Return the greatest cost of a selector, which the API server compares with `COST_LIMIT`.

    Raises:
        CelCompileError: the API server refuses the expression in a new object.

    Examples:
        >>> worst_selector_cost('device.driver == "dra.example.com"')
        4
    """
    try:
        tree = typed_tree(expression, device_declarations(without=NEW_FUNCTIONS))
        return worst_cost(tree, device_size)
    except RecursionError:
        raise CelCompileError("compilation failed: expression is nested too deeply") from None


def worst_expression_cost(text: str, declarations: Declarations, declared: DeclaredSize) -> int:
    """Return the greatest cost of an expression with variables of its own.

    Args:
        text: The expression.
        declarations: Its variables and the fields of their types.
        declared: The greatest sizes of the variables.

    Raises:
        CelCompileError: the expression is not valid.

    Examples:
        >>> from stowage.cel.estimation.sizes import Size
        >>> from stowage.cel.signatures.types import STRING
        >>> variables = Declarations({"self": STRING})
        >>> worst_expression_cost("self == 'a'", variables, lambda path: Size(0, 1000))
        2
    """
    try:
        tree = parse(text)
        check(tree, text, declarations)
        return worst_cost(tree, declared)
    except RecursionError:
        raise CelCompileError("compilation failed: expression is nested too deeply") from None
