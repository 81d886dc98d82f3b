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

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from simcluster.apiserver.errors import bad_request
from simcluster.schema.scalars import QUANTITY_FORM, canonical_quantity
from simcluster.values import Json

Table = Mapping[str, Any]

UNSET = object()
QUANTITIES = object()


class _Step(NamedTuple):
    """One line of a table.

    Args:
        field: that it is about.
        content: the default, ``QUANTITIES``, or the steps of a nested table.
        suffix: of the field's name: nothing, ``[]`` or ``?``.
        condition: the field that decides whether a nested table applies; empty for none.
        values: of that field, for which it applies.
    """

    field: str
    content: Any
    suffix: str = ""
    condition: str = ""
    values: frozenset[str] = frozenset()


def defaulting(table: Table, *then: Callable[[Json], None]) -> Callable[[Json], None]:
    """A function that fills objects by a table and then by functions.

    It raises an ApiError (400) if a quantity cannot be parsed.
    """
    steps = _steps(table)

    def set_defaults(obj: Json) -> None:
        _fill(obj, steps)
        for act in then:
            act(obj)

    return set_defaults


def _steps(table: Table) -> tuple[_Step, ...]:
    steps = []
    for name, content in table.items():
        if isinstance(content, Mapping):
            field, mark, condition = name.removesuffix("[]").partition("?")
            suffix = "[]" if name.endswith("[]") else mark
            key, _, known = condition.partition("=")
            values = frozenset(known.split("|"))
            steps.append(_Step(field, _steps(content), suffix, key, values))
        else:
            steps.append(_Step(name, content))
    return tuple(steps)


def _fill(obj: Json, steps: tuple[_Step, ...]) -> None:
    for step in steps:
        field, content = step.field, step.content
        if isinstance(content, tuple):
            for inner in _inner_objects(obj, step):
                _fill(inner, content)
        elif not field:
            content(obj)
        elif content is QUANTITIES:
            _rewrite_quantities(obj, field)
        elif field not in obj:
            default = content(obj) if callable(content) else content
            if default is not UNSET:
                obj[field] = list(default) if isinstance(default, list) else default


def _inner_objects(obj: Json, step: _Step) -> Sequence[Json]:
    """The objects that a nested table fills."""
    if step.suffix == "[]":
        return obj.get(step.field) or ()
    if not step.suffix:
        return (obj.setdefault(step.field, {}),)
    inner = obj.get(step.field)
    applies = not step.condition or (inner or {}).get(step.condition) in step.values
    return (inner,) if isinstance(inner, dict) and applies else ()


def _rewrite_quantities(obj: Json, field: str) -> None:
    """Make an amount, or each of a map of amounts, canonical."""
    amounts = obj.get(field)
    holder = amounts if isinstance(amounts, dict) else obj
    for name in list(amounts) if isinstance(amounts, dict) else [field] if amounts else ():
        canonical = canonical_quantity(holder[name])
        if canonical is None:
            path = f"{field}.{name}" if holder is amounts else field
            raise bad_request(f"{path}: quantity {holder[name]!r}: {QUANTITY_FORM}")
        holder[name] = canonical
