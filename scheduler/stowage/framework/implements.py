"""Which protocols a plugin implements."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeGuard, TypeVar, cast

T = TypeVar("T")


def implements(plugin: object, protocol: Callable[..., T]) -> TypeGuard[T]:
    """Whether a plugin has the methods of a protocol.

    Same answer as ``isinstance``, which takes 50 µs on Python 3.11: a profile asks some hundred
    times when it is built.

    Args:
        plugin: The plugin, which has a name and traits.
        protocol: One of the runtime-checkable protocols of plugins.
    """
    for name in members_of(cast("type", protocol)):
        if getattr(plugin, name, None) is None:
            return False
    return True


@cache
def members_of(protocol: type) -> tuple[str, ...]:
    """The names of a protocol's methods and attributes, its own before inherited ones."""
    return tuple(
        name
        for base in protocol.__mro__
        if base.__module__ != "typing" and base is not object
        for name in vars(base)
        if name[0] != "_"
    )
