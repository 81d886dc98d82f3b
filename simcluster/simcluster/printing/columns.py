"""The columns of each kind, as ``kubectl get`` and ``kubectl get -o wide`` show them.

Those of built-in kinds are in ``columns.json``; a column that several kinds have stands there once,
under ``common``, and is named by its heading elsewhere. Those of custom resources come from
``additionalPrinterColumns``.
"""

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from simcluster.crds.version import CustomVersion
from simcluster.kinds.resources import Resource
from simcluster.printing import kind_cells, pods
from simcluster.printing.cells import Cell, Column, cell, elapsed, timed_cell
from simcluster.store.store import encode

Json = dict[str, Any]

__all__ = ["columns_of", "kind_cells", "pods"]


class _Columns(msgspec.Struct):
    common: dict[str, Column]
    kinds: dict[str, list[str | Column]]


@cache
def _built_in() -> dict[str, list[Column]]:
    text = files("simcluster.printing").joinpath("columns.json").read_bytes()
    found = msgspec.json.decode(text, type=_Columns)
    default = [found.common["Name"], found.common["Created At"]]
    columns = {
        collection: [found.common[each] if isinstance(each, str) else each for each in listed]
        for collection, listed in found.kinds.items()
    }
    return {"": default, **columns}


def columns_of(resource: Resource) -> Sequence[Column]:
    """The columns of a resource."""
    if resource.custom is not None:
        return _custom_columns(resource.custom)
    return _built_in().get(resource.stored_in) or _built_in()[""]


def _custom_columns(custom: CustomVersion) -> Sequence[Column]:
    """The name and the version's own columns, or the age if it has none."""
    name = _built_in()[""][0]
    if not custom.columns:
        age = Column("Age", ".metadata.creationTimestamp", "since", type="date")
        return (name, msgspec.structs.replace(age, description="V1ObjectMeta.creationTimestamp"))
    return (name, *map(_custom_column, custom.columns))


def _custom_column(written: Json) -> Column:
    path, type_ = written["jsonPath"], written["type"]
    described = f"Custom resource definition column (in JSONPath format): {path}"
    return Column(
        written["name"],
        path,
        f"custom_{type_}",
        default=None,
        type=type_,
        format=written.get("format") or "",
        priority=written.get("priority") or 0,
        description=written.get("description") or described,
    )


@timed_cell
def custom_date(value: Any, now: float) -> Cell:
    """The time since a timestamp."""
    try:
        return elapsed(value, now)
    except (TypeError, ValueError):
        return "<invalid>"


@cell
def custom_string(value: Any) -> Cell:
    """A text, or anything else as JSON."""
    return value if isinstance(value, str) else encode(value).decode()


@cell
def custom_boolean(value: Any) -> Cell:
    """A boolean; nothing for anything else."""
    return value if isinstance(value, bool) else None


@cell
def custom_number(value: Any) -> Cell:
    """A number; nothing for anything else."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number else None


@cell
def custom_integer(value: Any) -> Cell:
    """A whole number, cut off after the point; nothing for anything else."""
    number = custom_number(value)
    return None if number is None else int(number)
