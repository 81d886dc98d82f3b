"""The language of the tables of defaults, and the function that fills an object by one.

A table maps field names to values, which are set where the field is missing. A nested table fills
the object in the field, which is made if it is missing. A name may end with:

- ``[]``: the table fills each object of a list;
- ``?``: the table fills the object only if it is there;
- ``?type=A|B``: the table fills the object only if its field ``type`` is ``A`` or ``B``.

A function as a value computes the default from the object that has the field; it may return
``UNSET``. ``QUANTITIES`` rewrites an amount, or a map of amounts, as the API server stores them
(``1000m`` to ``1``). The empty name holds a function that changes the object itself.
"""

from collections.abc import Callable, Mapping
from typing import Any

from simcluster.apiserver.errors import bad_request
from simcluster.schema.scalars import QUANTITY_FORM, canonical_quantity
from simcluster.values import Json

Table = Mapping[str, Any]

UNSET = object()
QUANTITIES = object()


Fill = Callable[[Json], None]


def defaulting(table: Table, *then: Fill) -> Fill:
    """A function that fills objects by a table and then by functions.

    It raises an ApiError (400) if a quantity cannot be parsed.
    """
    steps = (*(_step(name, content) for name, content in table.items()), *then)

    def fill(obj: Json) -> None:
        for step in steps:
            step(obj)

    return fill


def _step(name: str, content: Any) -> Fill:
    """The function for one line of a table."""
    if isinstance(content, Mapping):
        return _nested(name, defaulting(content))
    if not name:
        step: Fill = content
        return step
    if content is QUANTITIES:
        return lambda obj: _rewrite_quantities(obj, name)
    if callable(content):
        return _computed(name, content)
    if isinstance(content, list):
        return _computed(name, lambda _obj: list(content))

    def set_constant(obj: Json) -> None:
        if name not in obj:
            obj[name] = content

    return set_constant


def _computed(name: str, compute: Callable[[Json], Any]) -> Fill:
    def set_computed(obj: Json) -> None:
        if name not in obj:
            default = compute(obj)
            if default is not UNSET:
                obj[name] = default

    return set_computed


def _nested(name: str, fill: Fill) -> Fill:
    field, is_optional, condition = name.removesuffix("[]").partition("?")
    key, _, known = condition.partition("=")
    values = frozenset(known.split("|"))

    def fill_each(obj: Json) -> None:
        for item in obj.get(field) or ():
            fill(item)

    def fill_present(obj: Json) -> None:
        inner = obj.get(field)
        if isinstance(inner, dict) and (not key or inner.get(key) in values):
            fill(inner)

    def fill_inside(obj: Json) -> None:
        fill(obj.setdefault(field, {}))

    if name.endswith("[]"):
        return fill_each
    return fill_present if is_optional else fill_inside


def _rewrite_quantities(obj: Json, field: str) -> None:
    """Make an amount, or each of a map of amounts, canonical."""
    amounts = obj.get(field)
    if not amounts:
        return
    holder = amounts if isinstance(amounts, dict) else obj
    for name in list(amounts) if isinstance(amounts, dict) else [field]:
        canonical = canonical_quantity(holder[name])
        if canonical is None:
            path = f"{field}.{name}" if holder is amounts else field
            raise bad_request(f"{path}: quantity {holder[name]!r}: {QUANTITY_FORM}")
        holder[name] = canonical
