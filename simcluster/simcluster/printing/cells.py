"""What the cells of a Table are made of: ages, labels, selectors, containers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from simcluster.clock import parse_timestamp
from simcluster.printing.descriptions import description_of
from simcluster.store.selectors import selector_text

Json = dict[str, Any]
Cell = str | int | float | bool | None
NONE = "<none>"
UNKNOWN = "<unknown>"
UNSET = "<unset>"


@dataclass(frozen=True)
class Column:
    """One column: its definition and what it shows of an object.

    Args:
        name: heading.
        cell: ``(object, seconds since the epoch) -> value``.
        type: ``string`` or ``integer``.
        format: ``name`` for the column that names the object.
        priority: 1 shows only with ``-o wide``.
        description: what the column says of itself, where it is not one of a built-in kind.
    """

    name: str
    cell: Callable[[Json, float], Cell]
    type: str = "string"
    format: str = ""
    priority: int = 0
    description: str = ""

    def definition(self, collection: str) -> Json:
        """A ``TableColumnDefinition`` of a kind's collection."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description or description_of(collection, self.name),
            "priority": self.priority,
        }


def column(name: str, cell: Callable[[Json], Cell], type_: str = "string") -> Column:
    """A column whose cell does not depend on the time."""
    return Column(name, lambda obj, _now: cell(obj), type_)


def wide(name: str, cell: Callable[[Json], Cell], type_: str = "string") -> Column:
    """A column shown only with ``-o wide``."""
    return Column(name, lambda obj, _now: cell(obj), type_, priority=1)


def at(*path: str, default: Cell = "") -> Callable[[Json], Cell]:
    """The value at a path; ``default`` where there is none."""

    def cell(obj: Json) -> Cell:
        found: Any = obj
        for key in path:
            found = found.get(key) if isinstance(found, dict) else None
        return default if found is None else found

    return cell


def name_of(obj: Json) -> str:
    """``metadata.name``."""
    name: str = obj["metadata"]["name"]
    return name


def name_column() -> Column:
    """The Name column."""
    return Column("Name", lambda obj, _now: name_of(obj), format="name")


def age(obj: Json, now: float) -> str:
    """Time since the object's creation."""
    return since(obj["metadata"].get("creationTimestamp"), now)


def age_column() -> Column:
    """The Age column."""
    return Column("Age", age)


def default_columns() -> list[Column]:
    """Columns of a kind that has none of its own."""
    created = Column(
        "Created At", lambda obj, _now: obj["metadata"].get("creationTimestamp"), type="date"
    )
    return [name_column(), created]


def since(timestamp: str | None, now: float) -> str:
    """Time since a timestamp; ``<unknown>`` without one."""
    return human_duration(now - parse_timestamp(timestamp)) if timestamp else UNKNOWN


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


def joined(values: list[str]) -> str:
    """Values with commas; ``<none>`` for none."""
    return ",".join(values) or NONE


def labels_text(labels: Json | None) -> str:
    """``a=b,c=d``; ``<none>`` for none."""
    return joined([f"{key}={value}" for key, value in sorted((labels or {}).items())])


def selector_cell(selector: Json | None) -> str:
    """A ``LabelSelector`` in selector syntax; ``<none>`` for none."""
    return joined([selector_text(selector)] if selector else [])


def containers_of_template(obj: Json) -> list[Json]:
    """Containers of a workload's pod template."""
    found: list[Json] = obj["spec"]["template"]["spec"].get("containers") or []
    return found


def template_columns() -> list[Column]:
    """Containers, Images and Selector of a workload."""
    return [
        wide("Containers", lambda obj: ",".join(c["name"] for c in containers_of_template(obj))),
        wide("Images", lambda obj: ",".join(c["image"] for c in containers_of_template(obj))),
        wide("Selector", lambda obj: selector_cell(obj["spec"].get("selector"))),
    ]
