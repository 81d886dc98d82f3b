"""Rules of fields as data: validation modules are tables of these rules.

A rule takes an object and its path and yields the errors of that object. The functions here make
rules for one field; a rule over several fields is a generator function of its own. ``check``
applies a table in order, which is the order in which kube-apiserver lists the errors.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from simcluster.apiserver.errors import (
    FieldError,
    duplicate_value,
    forbidden_field,
    invalid_value,
    required,
    unsupported_value,
)
from simcluster.validation.names import NameCheck
from simcluster.values import Json

Errors = Iterator[FieldError]
Rule = Callable[[Json, str], Iterable[FieldError]]
UpdateRule = Callable[[Json, Json], Iterable[FieldError]]
"""Takes the new and the old object."""

IMMUTABLE = "field is immutable"
_NOT_NEGATIVE = "must be greater than or equal to 0"


def check(obj: Json, path: str, rules: Iterable[Rule]) -> Errors:
    """The errors of an object by a table of rules."""
    for rule in rules:
        yield from rule(obj, path)


def below(path: str, field: str) -> str:
    """The path of a field."""
    return f"{path}.{field}" if path else field


def named(value: object, form: NameCheck, path: str) -> Errors:
    """The errors of a value that must have a form."""
    for message in form(value):
        yield invalid_value(path, value, message)


def need(field: str, detail: str = "") -> Rule:
    """The field must be set."""

    def rule(obj: Json, path: str) -> Errors:
        if not obj.get(field):
            yield required(below(path, field), detail)

    return rule


def has_form(field: str, form: NameCheck, *, always: bool = False, shown: str = "") -> Rule:
    """The field, if set or ``always``, has a form; errors name the field ``shown`` if given."""

    def rule(obj: Json, path: str) -> Errors:
        value = obj.get(field) or ""
        if value or always:
            yield from named(value, form, below(path, shown or field))

    return rule


def need_form(field: str, form: NameCheck, detail: str = "") -> Rule:
    """The field must be set and have a form."""

    def rule(obj: Json, path: str) -> Errors:
        value, place = obj.get(field), below(path, field)
        if value:
            yield from named(value, form, place)
        else:
            yield required(place, detail)

    return rule


def all_have_form(field: str, form: NameCheck) -> Rule:
    """Each text of a list has a form."""

    def rule(obj: Json, path: str) -> Errors:
        for position, value in enumerate(obj.get(field) or ()):
            yield from named(value, form, f"{below(path, field)}[{position}]")

    return rule


def holds(field: str, is_good: Callable[[Any], bool], detail: str) -> Rule:
    """A condition on the field, if it is set."""

    def rule(obj: Json, path: str) -> Errors:
        value = obj.get(field)
        if value is not None and not is_good(value):
            yield invalid_value(below(path, field), value, detail)

    return rule


def not_negative(*fields: str) -> tuple[Rule, ...]:
    """Numbers that must not be negative."""
    return tuple(holds(field, lambda number: number >= 0, _NOT_NEGATIVE) for field in fields)


def one_of(field: str, *known: str) -> Rule:
    """The field, if it is set, has one of the known values."""

    def rule(obj: Json, path: str) -> Errors:
        value = obj.get(field)
        if value is not None and value not in known:
            yield unsupported_value(below(path, field), value, known)

    return rule


def absent(field: str, detail: str) -> Rule:
    """The field must not be set."""

    def rule(obj: Json, path: str) -> Errors:
        if field in obj:
            yield forbidden_field(below(path, field), detail)

    return rule


def inside(field: str, *rules: Rule, always: bool = False) -> Rule:
    """Rules of the object in a field; applied to an empty object if not set but ``always``."""

    def rule(obj: Json, path: str) -> Errors:
        inner = obj.get(field)
        if inner is not None or always:
            yield from check(inner or {}, below(path, field), rules)

    return rule


class Distinct:
    """Items of one list must differ in a field; a rule for :func:`each`.

    Args:
        field: that must differ.
        taken: values that are not free from the start.
        counts_empty: whether items without the field are duplicates of each other.
    """

    def __init__(self, field: str, taken: Iterable[str] = (), *, counts_empty: bool = True) -> None:
        self._field = field
        self._taken = frozenset(taken)
        self._counts_empty = counts_empty

    def errors(self, item: Json, path: str, seen: set[str]) -> Errors:
        """Errors of one item; ``seen`` are the values of the items before it."""
        value = item.get(self._field, "")
        if value in seen or value in self._taken:
            yield duplicate_value(below(path, self._field), value)
        if value or self._counts_empty:
            seen.add(value)


def each(field: str, *rules: Rule | Distinct) -> Rule:
    """Rules of each object of a list."""

    def rule(obj: Json, path: str) -> Errors:
        seen: set[str] = set()
        for position, item in enumerate(obj.get(field) or ()):
            place = f"{below(path, field)}[{position}]"
            for inner in rules:
                if isinstance(inner, Distinct):
                    yield from inner.errors(item, place, seen)
                else:
                    yield from inner(item, place)

    return rule


class Validation(NamedTuple):
    """How objects of one kind are validated: new ones, and changes (the new and the old one)."""

    new: Callable[[Json], list[FieldError]]
    update: Callable[[Json, Json], list[FieldError]]


def validation(
    *rules: Rule,
    before: Iterable[UpdateRule] = (),
    after: Iterable[UpdateRule] = (),
    revalidates: bool = True,
) -> Validation:
    """A kind's validation by tables.

    Args:
        rules: of a new object.
        before: rules of changes whose errors come before those of ``rules``.
        after: rules of changes whose errors come after them.
        revalidates: whether a changed object must be valid as a new one.
    """
    again: list[UpdateRule] = [lambda new, _old: check(new, "", rules)] if revalidates else []
    changes = (*before, *again, *after)
    return Validation(
        lambda obj: list(check(obj, "", rules)),
        lambda new, old: [error for rule in changes for error in rule(new, old)],
    )


def fixed(
    field: str, detail: str = IMMUTABLE, *, forbidden: bool = False, is_map: bool = False
) -> UpdateRule:
    """A field, given by its path, that does not change; an empty map is as good as none."""
    keys = field.split(".")

    def rule(new: Json, old: Json) -> Errors:
        value, before = _at(new, keys), _at(old, keys)
        if value == before or (is_map and not value and not before):
            return
        if forbidden:
            yield forbidden_field(field, detail)
        else:
            yield invalid_value(field, value, detail)

    return rule


def _at(obj: Json, keys: Sequence[str]) -> Any:
    found: Any = obj
    for key in keys:
        found = (found or {}).get(key)
    return found
