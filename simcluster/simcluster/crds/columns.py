"""The Table columns of custom resources: ``additionalPrinterColumns``."""

from collections.abc import Callable, Sequence
from typing import Any

from simcluster.crds.version import CustomVersion
from simcluster.printing.cells import Cell, Column, age, name_column, since
from simcluster.store.json_path import JsonPathError, compile_path
from simcluster.store.store import encode

Json = dict[str, Any]


def custom_columns(custom: CustomVersion) -> Sequence[Column]:
    """A version's columns: its own after the name, or the age where it has none."""
    if not custom.columns:
        return (name_column(), Column("Age", age, type="date"))
    return (name_column(), *map(_column, custom.columns))


def _column(written: Json) -> Column:
    path, type_ = written["jsonPath"], written["type"]
    described = written.get("description")
    return Column(
        written["name"],
        _cell(path, type_),
        type_,
        written.get("format") or "",
        written.get("priority") or 0,
        described or f"Custom resource definition column (in JSONPath format): {path}",
    )


def _cell(path: str, type_: str) -> Callable[[Json, float], Cell]:
    try:
        find = compile_path(path)
    except JsonPathError:
        return lambda _obj, _now: None

    def cell(obj: Json, now: float) -> Cell:
        found = find(obj)
        return _shown(found[0], type_, now) if found else None

    return cell


def _shown(value: Any, type_: str, now: float) -> Cell:
    if type_ == "date":
        return _since(value, now)
    if type_ == "string":
        if isinstance(value, bool):
            return "true" if value else "false"
        return value if isinstance(value, str) else encode(value).decode()
    if type_ == "boolean":
        return value if isinstance(value, bool) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if type_ == "integer" else value


def _since(value: Any, now: float) -> Cell:
    try:
        return since(value, now)
    except (TypeError, ValueError):
        return "<invalid>"
