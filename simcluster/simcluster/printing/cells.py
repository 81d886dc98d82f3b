"""Columns of Tables, and the functions that turn values of an object into their cells."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from simcluster.clock import parse_timestamp
from simcluster.openapi.descriptions import field_description
from simcluster.store.json_path import JsonPathError, compile_path
from simcluster.store.selectors import selector_text

Json = dict[str, Any]
Cell = str | int | float | bool | None
CellFunction = Callable[[Any, float], Cell]

NONE = "<none>"
UNKNOWN = "<unknown>"
UNSET = "<unset>"
MAX_LISTED = 3

CELLS: dict[str, CellFunction] = {}
"""Functions that columns name in ``show``: ``(value, seconds since the epoch) -> cell``."""
_OF_ALL_VALUES: set[str] = set()


def cell(function: Callable[[Any], Cell]) -> Callable[[Any], Cell]:
    """Register the function of a cell that does not depend on the time."""
    CELLS[function.__name__] = lambda value, _now: function(value)
    return function


def timed_cell(function: CellFunction) -> CellFunction:
    """Register the function of a cell that depends on the time."""
    CELLS[function.__name__] = function
    return function


def cell_of_all(function: Callable[[list[Any]], Cell]) -> Callable[[list[Any]], Cell]:
    """Register the function of a cell that shows all values at its path, not the first one."""
    _OF_ALL_VALUES.add(function.__name__)
    return cell(function)


class Column(msgspec.Struct, frozen=True):
    """One column: its definition and its cells.

    Args:
        name: heading.
        path: JSON path of the value to show; empty for the whole object.
        show: name of the function in ``CELLS`` that makes the cell; empty shows the value itself.
        template: format of an object's fields, such as ``{kind}/{name}``, instead of ``show``.
        default: the cell of an object that has no such value; empty text if there is no ``show``.
        type: ``string``, ``integer``, ``boolean``, ``number`` or ``date``.
        format: ``name`` for the column that names the object.
        priority: 1 shows only with ``-o wide``.
        description: text, or the field whose description it takes, such as ``V1PodStatus.podIP``.
    """

    name: str
    path: str = ""
    show: str = ""
    template: str = ""
    default: Cell | msgspec.UnsetType = msgspec.UNSET
    type: str = "string"
    format: str = ""
    priority: int = 0
    description: str = ""

    def definition(self) -> Json:
        """The ``TableColumnDefinition``."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": field_description(self.description),
            "priority": self.priority,
        }

    def cell(self, obj: Json, now: float) -> Cell:
        """The cell of an object; ``<unknown>`` if the object lacks what its kind has."""
        try:
            return self._cell(obj, now)
        except JsonPathError:
            return None
        except (AttributeError, KeyError, TypeError, ValueError):
            return UNKNOWN

    def _cell(self, obj: Json, now: float) -> Cell:
        if not self.path:
            return CELLS[self.show](obj, now)
        found = [value for value in compile_path(self.path)(obj) if value is not None]
        if not found and self.default is not msgspec.UNSET:
            return self.default
        if self.show:
            value: Any = found if self.show in _OF_ALL_VALUES else next(iter(found), None)
            return CELLS[self.show](value, now)
        shown: Any = found[0] if found else ""
        return self.template.format_map(shown) if self.template and shown else shown


def elapsed(timestamp: str | None, now: float) -> str:
    """Time since a timestamp; ``<unknown>`` without one."""
    return human_duration(now - parse_timestamp(timestamp)) if timestamp else UNKNOWN


@timed_cell
def since(timestamp: str, now: float) -> str:
    """Time since a timestamp."""
    return elapsed(timestamp, now)


def human_duration(seconds: float) -> str:
    """A duration as kubectl shortens it: ``45s``, ``3m12s``, ``5h``, ``2d3h``, ``400d``.

    Follows apimachinery's ``duration.HumanDuration``.
    """
    total = int(seconds)
    if total < 0:
        return "<invalid>" if total < -1 else "0s"
    minutes, hours, days = total // 60, total // 3600, total // 86400
    if total < 120:
        return f"{total}s"
    if minutes < 10:
        return _two(minutes, "m", total % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if hours < 192:
        return _two(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    years = days // 365
    return _two(years, "y", days % 365, "d") if years < 8 else f"{years}y"


def _two(major: int, major_unit: str, minor: int, minor_unit: str) -> str:
    return f"{major}{major_unit}{minor}{minor_unit}" if minor else f"{major}{major_unit}"


def listed(values: Sequence[str], none: str = NONE) -> str:
    """At most three values, and how many more there are."""
    if len(values) > MAX_LISTED:
        return f"{','.join(values[:MAX_LISTED])} + {len(values) - MAX_LISTED} more..."
    return ",".join(values) or none


@cell_of_all
def joined(values: list[str]) -> str:
    """Values separated by commas."""
    return ",".join(values)


@cell
def count(values: Json | list[Any] | None) -> int:
    """The number of items."""
    return len(values or ())


@cell
def flag(value: bool | None) -> bool:
    """A boolean that is false where it is not set."""
    return bool(value)


@cell
def flag_text(value: bool | None) -> str:
    """The same as a Python-like word."""
    return str(bool(value))


@cell
def text(value: int | str) -> str:
    """A number or a text as text."""
    return str(value)


@cell
def stripped(value: str | None) -> str:
    """A text without surrounding space."""
    return (value or "").strip()


@cell
def duration(seconds: int) -> str:
    """A number of seconds."""
    return human_duration(seconds)


@cell
def labels(pairs: Json | None) -> str:
    """``a=b,c=d``."""
    return ",".join(f"{key}={value}" for key, value in sorted((pairs or {}).items())) or NONE


@cell
def selector(label_selector: Json | None) -> str:
    """A ``LabelSelector`` in selector syntax."""
    return selector_text(label_selector) or NONE
