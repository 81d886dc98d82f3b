"""Which of several tied nodes a pod goes to, node by node."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b

from stowage.framework import Draw


def chosen_of_tied(
    tied: Sequence[str],
    plugins: Sequence[Mapping[str, int]],
    last_resort: Callable[[list[str]], str],
) -> str:
    """The node that is left after each plugin has kept its best ones.

    Args:
        tied: The tied nodes, in the order of their rows.
        plugins: Each plugin's scores, by node.
        last_resort: Takes one of several nodes.
    """
    left = list(tied)
    for scores in plugins:
        best = max(scores.get(name, 0) for name in left)
        left = [name for name in left if scores.get(name, 0) == best]
    return left[0] if len(left) == 1 else last_resort(left)


def at_random(draw: Draw) -> Callable[[list[str]], str]:
    """The node that the draw picks."""
    return lambda left: left[draw.choose(len(left))]


def in_turn(order: Sequence[str], draw: Draw) -> Callable[[list[str]], str]:
    """The node whose turn it is, in search order from the start of the search."""
    start = draw.start % len(order)
    turned = [*order[start:], *order[:start]]

    def take(left: list[str]) -> str:
        in_order = [name for name in turned if name in left]
        return in_order[draw.turn % len(in_order)]

    return take


def first_by_seed(seed: int) -> Callable[[list[str]], str]:
    """The node with the lowest hash of seed and name."""
    return lambda left: min(
        left, key=lambda name: blake2b(f"{seed}/{name}".encode(), digest_size=8).digest()
    )
