"""Estimates the worst cost of selectors, by which the API server refuses those above its limit.

`estimator` walks the tree of an expression with its types. Sizes and costs of values that nobody
knows are the greatest of 64 bits, so such an expression is refused: ``a != b`` of quantities,
``type(x) == int``. The scheduler does not estimate, and does not import this package.
"""

from stowage.cel.checking.environment import NEW_FUNCTIONS, device_declarations
from stowage.cel.errors import CelCompileError
from stowage.cel.estimation.device_sizes import device_size
from stowage.cel.estimation.estimator import worst_cost
from stowage.cel.selector import typed_tree


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
