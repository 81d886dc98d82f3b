"""Dataclasses whose methods are made when they are needed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def late_dataclasses() -> Iterator[None]:
    """Classes that are declared as dataclasses in this block become such when they are first used.

    That is with their first instance, or when someone asks for their fields. To make the methods of
    one takes half a millisecond, and a library may have dozens that nobody uses. Not for classes
    that threads use: the first use is not guarded.
    """
    make_now = dataclasses.dataclass

    def dataclass(cls: Any = None, /, **options: Any) -> Any:
        def declare(declared: Any) -> Any:
            if options.get("slots") or "__init__" in vars(declared):
                # With slots it would be another class.
                return make_now(declared, **options)
            _make_late(declared, lambda: make_now(declared, **options))
            return declared

        return declare if cls is None else declare(cls)

    dataclasses.dataclass = dataclass
    try:
        yield
    finally:
        dataclasses.dataclass = make_now


def _make_late(declared: Any, make_now: Callable[[], Any]) -> None:
    def make() -> None:
        del declared.__init__, declared.__dataclass_fields__
        make_now()

    def first_init(self: Any, *arguments: Any, **named: Any) -> None:
        make()
        declared.__init__(self, *arguments, **named)

    declared.__init__ = first_init
    declared.__dataclass_fields__ = _LateFields(make)


class _LateFields:
    """The attribute ``__dataclass_fields__`` of a class that is not a dataclass yet.

    `dataclasses` asks the bases of a class for it, too.
    """

    def __init__(self, make: Callable[[], None]) -> None:
        self._make = make

    def __get__(self, _instance: object, owner: Any) -> Any:
        self._make()
        return owner.__dataclass_fields__
