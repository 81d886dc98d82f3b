"""Mutations of valid inputs: of bytes, of text, and of trees of mappings and lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from random import Random
from typing import Any

MAX_BYTES = 16_384
"""Longer inputs are cut: what a long input costs is tested apart from the mutations."""

_ODD_BYTES = (0, 9, 10, 13, 27, 32, 34, 38, 39, 42, 45, 46, 47, 58, 91, 92, 123, 127, 128, 155, 255)
ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1.5, -0.0, 1e308, 2**31, 2**63 - 1, 2**63, -(2**63), 2**64, 10**30),
    *("", " ", "\x00", "\x1b[2J", "a\nb", "\u202e\U0001f6a2", "In", "Exists", "Lt", "NoExecute"),
    *("Always", "9" * 30, "a" * 300, "1h", "-1s", "1e99999"),
    *([], {}, [None], [[]], [""], [{}], {"": ""}, {"a": None}, {"a": {"b": []}}, ["a"] * 100),
)
_ODD_NAMES = ("", "a.b", "[0]", "name ", "\n", "\x1b[1m", "__class__", "a" * 300)


def mutated_bytes(
    rng: Random, data: bytes, tokens: Sequence[bytes] = (), others: Sequence[bytes] = ()
) -> bytes:
    """The data with one to eight changes.

    Args:
        rng: Decides.
        data: The valid input.
        tokens: Words of the input's language, which are inserted or put in place of others.
        others: Other valid inputs, of which parts are inserted.
    """
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        data = _changed(rng, data, tokens, others)
    return data[:MAX_BYTES]


def mutated_text(
    rng: Random, text: str, tokens: Sequence[bytes] = (), others: Sequence[str] = ()
) -> str:
    """`mutated_bytes` of a text; bytes that are no UTF-8 any more are replaced."""
    data = mutated_bytes(rng, text.encode(), tokens, [each.encode() for each in others])
    return data.decode(errors="replace")


def _changed(rng: Random, data: bytes, tokens: Sequence[bytes], others: Sequence[bytes]) -> bytes:
    start = rng.randrange(len(data) + 1)
    end = min(len(data), start + rng.choice((1, 1, 2, 4, 16, 100)))
    before, part, after = data[:start], data[start:end], data[end:]
    match rng.randrange(8):
        case 0:
            return before + after
        case 1:
            return before + part * rng.choice((2, 3, 50)) + after
        case 2:
            return before + bytes([rng.choice(_ODD_BYTES)]) + part + after
        case 3 if part:
            return before + bytes([part[0] ^ 1 << rng.randrange(8)]) + data[start + 1 :]
        case 4 if tokens:
            return before + rng.choice(tokens) + after
        case 5 if others:
            other = rng.choice(others)
            place = rng.randrange(len(other) + 1)
            return before + other[place : place + rng.choice((8, 64, 1000))] + after
        case 6:
            return data[: max(0, len(data) - rng.choice((1, 8, 100, 1000)))]
        case _:
            return before + after + part


def mutated_tree(rng: Random, tree: Any, names: Sequence[str] = ()) -> Any:
    """A copy of the tree with one to ten changes of its values and names.

    Args:
        rng: Decides.
        tree: Mappings, lists and scalars.
        names: Field names that replace others.
    """
    tree = deepcopy(tree)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 10))):
        spoil(tree, rng, (*names, *_ODD_NAMES))
    return tree


def spoil(tree: Any, rng: Random, names: Sequence[str], texts: Sequence[str] = ()) -> None:
    """Change one place of the tree: remove, replace, repeat, rename or copy a value.

    Args:
        tree: Mappings and lists; a scalar stays as it is.
        rng: Decides.
        names: New names of fields.
        texts: New values beside `ODD_VALUES`.
    """
    places = list(_places(tree)) if isinstance(tree, dict | list) else []
    if not places:
        return
    container, key = rng.choice(places)
    match rng.randrange(7):
        case 0:
            del container[key]
        case 1 if texts:
            container[key] = rng.choice(texts)
        case 2 if isinstance(container[key], list) and container[key]:
            container[key] = container[key] * rng.choice((2, 3, 50))
        case 3 if isinstance(container, dict):
            container[rng.choice(names)] = container.pop(key)
        case 4:
            other, other_key = rng.choice(places)
            container[key] = deepcopy(other[other_key])
        case _:
            container[key] = deepcopy(rng.choice(ODD_VALUES))


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every path in the tree that has a value."""
    keys = list(value) if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])
