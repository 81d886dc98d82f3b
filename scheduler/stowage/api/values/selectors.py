"""Compiled label selectors (``apimachinery/pkg/labels`` v1.36).

Compiled selectors are immutable and canonical, so they can be compared, hashed and interned:
requirements are sorted, duplicates dropped, and of many, the NotIn of a label are one.
`Requirement.matches_value` evaluates a label value or its absence; columns call it once per
distinct value instead of once per object.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import lru_cache

import msgspec

from stowage.api.decoding.errors import SelectorError
from stowage.api.objects.meta import LabelSelector, LabelSelectorRequirement

__all__ = [
    "EVERYTHING",
    "NOTHING",
    "LabelSelector",
    "LabelSelectorRequirement",
    "Operator",
    "Requirement",
    "Selector",
    "compile_label_selector",
    "selector_from_labels",
    "valid_requirement",
]

_NAME_PART = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
# At most 63 characters.
_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_CHARACTERS = (
    "must consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character"
)


class Operator(StrEnum):
    """The operator of a requirement."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"
    EQUALS = "="
    DOUBLE_EQUALS = "=="
    NOT_EQUALS = "!="


_POSITIVE = (Operator.IN, Operator.EQUALS, Operator.DOUBLE_EQUALS)
_NEGATIVE = (Operator.NOT_IN, Operator.NOT_EQUALS)
_MANY = 16
_SETS = (Operator.IN, Operator.NOT_IN)
_OF_LABEL_SELECTORS = {
    operator.value: operator
    for operator in (Operator.IN, Operator.NOT_IN, Operator.EXISTS, Operator.DOES_NOT_EXIST)
}
_UNARY = (Operator.EXISTS, Operator.DOES_NOT_EXIST)
_INFIX = {Operator.IN: " in ", Operator.NOT_IN: " notin ", Operator.GT: ">", Operator.LT: "<"}


class Requirement(msgspec.Struct, frozen=True, order=True, gc=False):
    """A condition on a label; `values` are sorted and distinct."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches_value(self, value: str | None) -> bool:
        """Whether a value of the label matches; None stands for an absent label."""
        if self.operator in _POSITIVE:
            return value is not None and self._names(value)
        if self.operator in _NEGATIVE:
            return value is None or not self._names(value)
        if self.operator in _UNARY:
            return (value is not None) == (self.operator is Operator.EXISTS)
        return value is not None and self._compares(value)

    def _names(self, value: str) -> bool:
        """Whether `value` is among `values`, which may be thousands."""
        if len(self.values) < _MANY:
            return value in self.values
        place = bisect_left(self.values, value)
        return place < len(self.values) and self.values[place] == value

    def _compares(self, value: str) -> bool:
        actual, bound = parse_int64(value), parse_int64(self.values[0])
        if actual is None or bound is None:
            return False
        return actual > bound if self.operator is Operator.GT else actual < bound

    def __str__(self) -> str:
        if self.operator is Operator.EXISTS:
            return self.key
        if self.operator is Operator.DOES_NOT_EXIST:
            return f"!{self.key}"
        values = ",".join(self.values)
        if self.operator in (Operator.IN, Operator.NOT_IN):
            values = f"({values})"
        return f"{self.key}{_INFIX.get(self.operator, self.operator.value)}{values}"


class Selector(msgspec.Struct, frozen=True, gc=False):
    """Requirements that must all hold (``labels.Selector``); without any it matches everything."""

    requirements: tuple[Requirement, ...] = ()
    matches_nothing: bool = False

    @property
    def matches_everything(self) -> bool:
        """Whether the selector has no requirements (``Empty`` of v1.36)."""
        return not self.requirements and not self.matches_nothing

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the selector matches an object with these labels."""
        if self.matches_nothing:
            return False
        # A loop takes half the time of all(); a pod may be matched with thousands of selectors.
        for each in self.requirements:  # noqa: SIM110
            if not each.matches_value(labels.get(each.key)):
                return False
        return True

    def with_requirements(self, more: Iterable[Requirement]) -> Selector:
        """The selector with more requirements (``Add`` of v1.36)."""
        added = tuple(more)
        if self.matches_nothing or not added:
            return self
        return _canonical((*self.requirements, *added))

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


EVERYTHING = Selector()
"""Matches every object: an empty selector."""
NOTHING = Selector(matches_nothing=True)
"""Matches no object: an absent selector."""


def compile_label_selector(selector: LabelSelector | None) -> Selector:
    """Compile a selector as sent (``metav1.LabelSelectorAsSelector``); None matches nothing.

    Raises:
        SelectorError: An operator, key or value is invalid.
    """
    if selector is None:
        return NOTHING
    requirements = [
        valid_requirement(key, Operator.IN, (value,))
        for key, value in selector.match_labels.items()
    ]
    for expression in selector.match_expressions:
        operator = _OF_LABEL_SELECTORS.get(expression.operator)
        if operator is None:
            raise SelectorError(
                f'"{expression.operator}" is not a valid label selector operator',
            )
        requirements.append(valid_requirement(expression.key, operator, expression.values))
    return _canonical(requirements)


def selector_from_labels(labels: Mapping[str, str]) -> Selector:
    """A selector of these labels, without validation (``labels.SelectorFromSet``)."""
    return _canonical([Requirement(key, Operator.IN, (value,)) for key, value in labels.items()])


def valid_requirement(
    key: str, operator: Operator, values: Iterable[str], path: str = ""
) -> Requirement:
    """Create a validated requirement (``labels.NewRequirement``).

    Args:
        key: A label key.
        operator: The relation.
        values: None for Exists and DoesNotExist, one integer for Gt and Lt, else at least one.
        path: The field path of the requirement, for the error text.

    Raises:
        SelectorError: The key, the number of values or a value is invalid.
    """
    given = tuple(values)
    if len(given) == 1 and operator in _SETS and _VALUE.fullmatch(given[0]) and not key_error(key):
        return Requirement(key, operator, given)
    distinct = given if len(given) == 1 else tuple(sorted(set(given)))
    if not (key_error(key) or _values_error(operator, given) or _has_invalid(distinct)):
        return Requirement(key, operator, distinct)
    prefix = f"{path}." if path else ""
    errors = []
    if error := key_error(key):
        errors.append(f'{prefix}key: Invalid value: "{key}": {error}')
    if error := _values_error(operator, given):
        errors.append(f"{prefix}{error}")
    for index, value in enumerate(distinct):
        if error := _value_error(value):
            errors.append(f'{prefix}values[{index}][{key}]: Invalid value: "{value}": {error}')
    raise SelectorError(joined_errors(errors))


def joined_errors(errors: list[str]) -> str:
    """Several errors as one text, in the format of an aggregate error of v1.36."""
    distinct = list(dict.fromkeys(errors))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


@lru_cache(maxsize=4096)
def key_error(key: str) -> str:
    """Why a label key is invalid; empty if it is valid."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        return (
            f"a valid label key {_CHARACTERS} (e.g. 'MyName',  or 'my.name',  or '123-abc', "
            f"regex used for validation is '{_NAME_PART.pattern}') with an optional DNS subdomain "
            "prefix and '/' (e.g. 'example.com/MyName')"
        )
    errors = []
    if slash and not prefix:
        errors.append("prefix part must be non-empty")
    elif slash:
        errors += _prefix_errors(prefix)
    if not name:
        errors.append("name part must be non-empty")
    elif _num_bytes(name) > 63:
        errors.append("name part must be no more than 63 bytes")
    if not _NAME_PART.fullmatch(name):
        errors.append(
            f"name part {_CHARACTERS} (e.g. 'MyName',  or 'my.name',  or '123-abc', "
            f"regex used for validation is '{_NAME_PART.pattern}')"
        )
    return "; ".join(errors)


def _prefix_errors(prefix: str) -> Iterator[str]:
    if _num_bytes(prefix) > 253:
        yield "prefix part must be no more than 253 bytes"
    if not _SUBDOMAIN.fullmatch(prefix):
        yield (
            "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
            "characters, '-' or '.', and must start and end with an alphanumeric character "
            f"(e.g. 'example.com', regex used for validation is '{_SUBDOMAIN.pattern}')"
        )


def _num_bytes(text: str) -> int:
    """In UTF-8; text of a command line may have lone surrogates."""
    return len(text.encode(errors="surrogatepass"))


def _has_invalid(values: tuple[str, ...]) -> bool:
    if len(values) > _MANY:
        # Tens of thousands of values would displace each other in the cache.
        return None in map(_VALUE.fullmatch, values)
    return any(map(_value_error, values))


@lru_cache(maxsize=16384)
def _value_error(value: str) -> str:
    errors = []
    if _num_bytes(value) > 63:
        errors.append("must be no more than 63 bytes")
    if value and not _NAME_PART.fullmatch(value):
        errors.append(
            "a valid label must be an empty string or consist of alphanumeric characters, "
            "'-', '_' or '.', and must start and end with an alphanumeric character "
            "(e.g. 'MyValue',  or 'my_value',  or '12345', "
            f"regex used for validation is '({_NAME_PART.pattern})?')"
        )
    return "; ".join(errors)


def _values_error(operator: Operator, values: tuple[str, ...]) -> str:
    if operator in (Operator.IN, Operator.NOT_IN):
        wrong, rule = not values, "for 'in', 'notin' operators, values set can't be empty"
    elif operator in _UNARY:
        wrong, rule = bool(values), "values set must be empty for exists and does not exist"
    elif operator in (Operator.GT, Operator.LT):
        if len(values) == 1 and parse_int64(values[0]) is None:
            return (
                f'values[0]: Invalid value: "{values[0]}": '
                "for 'Gt', 'Lt' operators, the value must be an integer"
            )
        wrong = len(values) != 1
        rule = "for 'Gt', 'Lt' operators, exactly one value is required"
    else:
        wrong, rule = len(values) != 1, "exact-match compatibility requires one single value"
    if not wrong:
        return ""
    shown = "[" + ",".join(f'"{value}"' for value in values) + "]"
    return f"values: Invalid value: {shown}: {rule}"


def parse_int64(text: str) -> int | None:
    """A decimal integer that fits an int64 (Go's ``strconv.ParseInt``), else None."""
    if len(text) > 100 or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def _canonical(requirements: Collection[Requirement]) -> Selector:
    if len(requirements) == 1:
        return Selector(tuple(requirements))
    if len(requirements) > _MANY:
        requirements = _with_exclusions_merged(requirements)
    return Selector(tuple(sorted(set(requirements))))


def _with_exclusions_merged(requirements: Iterable[Requirement]) -> list[Requirement]:
    """Equal requirements in which one of each label excludes the values that many excluded."""
    excluded: dict[str, set[str]] = {}
    merged: list[Requirement] = []
    for requirement in requirements:
        if requirement.operator is Operator.NOT_IN:
            excluded.setdefault(requirement.key, set()).update(requirement.values)
        else:
            merged.append(requirement)
    for key, values in excluded.items():
        merged.append(Requirement(key, Operator.NOT_IN, tuple(sorted(values))))
    return merged
