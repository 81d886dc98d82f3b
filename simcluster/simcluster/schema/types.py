"""The types of the served kinds, read once from ``types.json`` and resolved on first use."""

from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import msgspec

from simcluster.schema import go_types
from simcluster.schema.merging import ATOMIC, ATOMIC_MAPS, ATOMIC_STRUCTS, LISTS, ListMerge

PYTHON_TYPES: dict[str, type] = {
    "string": str,
    "bool": bool,
    "int32": int,
    "int64": int,
    "float": float,
}


_NO_STATE: dict[str, Any] = {"state": {}, "lastState": {}}
ALWAYS_WRITTEN: dict[str, dict[str, Any]] = {
    "ContainerStatus": _NO_STATE,
    "PersistentVolumeClaimSpec": {"resources": {}},
    "ServiceStatus": {"loadBalancer": {}},
    **{
        name: dict.fromkeys(times)
        for name, *times in (
            ("PodCondition", "lastProbeTime", "lastTransitionTime"),
            ("NodeCondition", "lastHeartbeatTime", "lastTransitionTime"),
            ("PersistentVolumeClaimCondition", "lastProbeTime", "lastTransitionTime"),
            ("JobCondition", "lastProbeTime", "lastTransitionTime"),
            ("DeploymentCondition", "lastUpdateTime", "lastTransitionTime"),
            ("ReplicaSetCondition", "lastTransitionTime"),
            ("DaemonSetCondition", "lastTransitionTime"),
            ("StatefulSetCondition", "lastTransitionTime"),
            ("Condition", "lastTransitionTime"),
            ("ContainerStateRunning", "startedAt"),
            ("ContainerStateTerminated", "startedAt", "finishedAt"),
            ("EventSeries", "lastObservedTime"),
            ("events.EventSeries", "lastObservedTime"),
        )
    },
}
"""What is written even where it was not set: values that are no pointers in Go."""


class Scalar(NamedTuple):
    """A value without fields.

    Args:
        kind: string, bool, int32, int64, float, any, bytes, Time, MicroTime, Quantity or
            IntOrString.
    """

    kind: str


DEDUCED = Scalar("deduced")
"""What no schema describes: its objects are owned in parts by whoever wrote those."""


class MapType(NamedTuple):
    """A map from strings to values of one type; ``is_atomic`` to server-side apply."""

    value: "Type"
    is_atomic: bool = False


class ListType(NamedTuple):
    """A list of values of one type, and how it merges."""

    item: "Type"
    merge: ListMerge = ATOMIC


class Struct:
    """An object with known fields.

    Args:
        name: its Go type, such as ``PodSpec``.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_atomic = name in ATOMIC_STRUCTS
        self.fields: dict[str, Type] = {}
        self.others: Type | None = None
        """The type of fields that are kept without being known."""
        self.plain: dict[str, type] = {}
        """The Python type of each field that holds a text, a truth or a whole number."""
        self.kept_empty: frozenset[str] = frozenset()
        """Fields that are written even if they hold nothing."""
        self.always_written: dict[str, Any] = ALWAYS_WRITTEN.get(name, {})
        self._go_types: dict[str, str] = {}

    def go_type(self, field: str) -> str:
        """The Go type of a field, as decoding errors name it."""
        return self._go_types.get(field, "") or go_types.go_type(self.name, field)

    def fill(self, described: dict[str, str]) -> None:
        """Resolve the fields; apart from construction, for types refer to each other."""
        kept = set()
        for field, text in described.items():
            is_required = text.endswith("!")
            self.fields[field] = _resolve(self.name, field, text.rstrip("!"))
            self._go_types[field] = go_types.go_type(self.name, field, text.rstrip("!"))
            if is_required or go_types.is_pointer(self.name, field, text.rstrip("!")):
                kept.add(field)
        self.kept_empty = frozenset(kept)
        for field, type_ in self.fields.items():
            if isinstance(type_, Scalar) and type_.kind in {"string", "bool", "int32", "int64"}:
                self.plain[field] = PYTHON_TYPES[type_.kind]


Type = Scalar | MapType | ListType | Struct


@cache
def _described() -> dict[str, dict[str, str]]:
    text = files("simcluster.schema").joinpath("types.json").read_bytes()
    found: dict[str, dict[str, str]] = msgspec.json.decode(text)
    return found


_STRUCTS: dict[str, Struct] = {}


def struct_of(name: str) -> Struct | None:
    """The type of a name, such as ``Pod`` or ``events.Event``; ``None`` if it is not known."""
    found = _STRUCTS.get(name)
    if found is None and name in _described():
        found = _STRUCTS[name] = Struct(name)
        found.fill(_described()[name])
    return found


def _resolve(owner: str, field: str, text: str) -> Type:
    if text.startswith("[]"):
        merge = LISTS.get(owner, {}).get(field, ATOMIC)
        return ListType(_resolve(owner, "", text[2:]), merge)
    if text.startswith("{}"):
        is_atomic = f"{owner}.{field}" in ATOMIC_MAPS
        return MapType(_resolve(owner, "", text[2:]), is_atomic)
    found: Struct | None = struct_of(text) if text[0].isupper() or "." in text else None
    return found if found is not None else Scalar(text)
