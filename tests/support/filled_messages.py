"""Events and instructions that are made from their types, with a marked text in every field."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import Any, get_args

import msgspec
from msgspec import inspect

from stowage.api.events import DeviceObjectSeen, Event, StorageSeen
from stowage.api.instructions import Instruction
from stowage.api.objects.device import DeviceObject
from stowage.api.objects.volume import StorageObject

MARK = "zebra"
KEPT = frozenset(
    {
        # Quantities by name of the resource.
        *("allocatable", "allocated_resources", "capacity", "consumed_capacity", "limits"),
        *("overhead", "requests"),
        # Names of resources.
        *("extended_resource_name", "resource", "resource_name"),
        # Names of plugins.
        *("others", "plain_plugins", "plugin", "plugins", "unschedulable_plugins", "weights"),
    }
)
"""Fields whose texts stay."""


def filled(kind: inspect.Type, field: str = "") -> Iterator[Any]:
    """Values of a type with a marked text in every place where there may be one."""
    match kind:
        case inspect.StrType():
            yield "cpu" if field in KEPT else f"{MARK}-{field}"
        case inspect.StructType(cls=cls, fields=fields):
            parts = {each.name: list(filled(each.type, each.name)) for each in fields}
            for number in range(max((len(found) for found in parts.values()), default=1)):
                yield cls(**{name: found[number % len(found)] for name, found in parts.items()})
        case inspect.UnionType(types=types):
            some = [each for each in types if not isinstance(each, inspect.NoneType)]
            texts = [each for each in some if isinstance(each, inspect.StrType)]
            for each in texts or some:
                yield from filled(each, field)
        case inspect.DictType(value_type=inspect.AnyType()):
            yield {"metadata": {"title": MARK}}
        case inspect.DictType(key_type=key, value_type=value):
            yield dict(zip(filled(key, field), filled(value, field), strict=False))
        case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
            yield tuple(filled(item, field))
        case inspect.TupleType(item_types=items):
            yield tuple(next(filled(each, field)) for each in items)
        case _:
            yield plain(kind)


def plain(kind: inspect.Type) -> Any:
    """A value of a type that holds no text."""
    match kind:
        case inspect.EnumType(cls=cls) if issubclass(cls, Enum):
            return next(iter(cls))
        case inspect.RawType():
            return msgspec.Raw(b'"zebra"')
        case inspect.BytesType():
            return b""
        case inspect.BoolType():
            return True
    return 1


SEEN: dict[Any, Callable[[Any], Event]] = {
    **dict.fromkeys(get_args(StorageObject), StorageSeen),
    **dict.fromkeys(get_args(DeviceObject), DeviceObjectSeen),
}
"""Kind of object -> its event; the types of these events alone do not say what they hold."""
KINDS: Sequence[type[msgspec.Struct]] = [
    *(kind for kind in get_args(Event) if kind not in SEEN.values()),
    *SEEN,
    *get_args(Instruction),
]
"""The kinds of events and instructions, and those of objects with an event of `SEEN`."""


def messages_of(kind: type[msgspec.Struct]) -> Iterator[Any]:
    """Events or instructions of a kind, or events about objects of it, with marked texts."""
    for value in filled(inspect.type_info(kind)):
        yield SEEN[kind](value) if kind in SEEN else value
