"""Parses selectors in text form: ``app in (web,api),!canary``, ``spec.nodeName=``.

The grammars are those of apimachinery's ``labels.Parse`` and ``fields.ParseSelector`` (v1.36).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from stowage.api.decoding.errors import SelectorError
from stowage.api.values.selectors import (
    Operator,
    Requirement,
    Selector,
    key_error,
    valid_requirement,
)

_TOKEN = re.compile(r"[ \t\r\n]*(?:(==|!=|[=!(),<>])|([^=!(),<>\s\0]+)|$)")
_SYMBOLS = frozenset(["(", ")", ",", "!", "==", "=", "!=", "<", ">", ""])
_OPERATORS = {
    "in": Operator.IN,
    "notin": Operator.NOT_IN,
    "=": Operator.EQUALS,
    "==": Operator.DOUBLE_EQUALS,
    "!=": Operator.NOT_EQUALS,
    ">": Operator.GT,
    "<": Operator.LT,
}
_FIELD_TERM = re.compile(r"((?:[^\\=!,]|\\.|!(?!=))*)(==|!=|=)(.*)", re.DOTALL)
_FIELD_VALUE = re.compile(r"(?:[^\\=,]|\\[\\=,])*")


def parse_label_selector(text: str) -> Selector:
    """Parse a label selector in text form; an empty one matches everything.

    Raises:
        SelectorError: The text does not follow the grammar, or a key or value is invalid.

    Examples:
        >>> str(parse_label_selector("tier notin (db, cache) , !canary, app=web"))
        'app=web,!canary,tier notin (cache,db)'
    """
    return _LabelSelectorParser(text).parse()


class _LabelSelectorParser:
    """Recursive descent over the tokens of one selector; the last token is the empty string."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._next = 0

    def parse(self) -> Selector:
        requirements: list[Requirement] = []
        if self._peek():
            self._expect_key("found '{}', expected: !, identifier, or 'end of string'")
        while self._peek():
            requirements.append(self._requirement())
            separator = self._take()
            if separator == ",":
                self._expect_key("found '{}', expected: identifier after ','")
            elif separator:
                raise SelectorError(f"found '{separator}', expected: ',' or 'end of string'")
        return Selector(tuple(sorted(requirements, key=lambda each: each.key)))

    def _peek(self) -> str:
        return self._tokens[self._next]

    def _take(self) -> str:
        token = self._tokens[self._next]
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return token

    def _expect_key(self, complaint: str) -> None:
        if self._peek() != "!" and self._peek() in _SYMBOLS:
            raise SelectorError(complaint.format(self._peek()))

    def _requirement(self) -> Requirement:
        try:
            return self._parsed_requirement()
        except SelectorError as error:
            raise SelectorError(f"unable to parse requirement: {error}") from None

    def _parsed_requirement(self) -> Requirement:
        negated = self._peek() == "!"
        if negated:
            self._take()
        key = self._take()
        if key in _SYMBOLS:
            raise SelectorError(f"found '{key}', expected: identifier")
        if error := key_error(key):
            raise SelectorError(f'<nil>: Invalid value: "{key}": {error}')
        if self._peek() in ("", ","):
            return Requirement(key, Operator.DOES_NOT_EXIST if negated else Operator.EXISTS)
        if negated:
            # v1.36 keeps DoesNotExist here, and the caller reports the token that follows.
            return Requirement(key, Operator.DOES_NOT_EXIST)
        word = self._take()
        operator = _OPERATORS.get(word)
        if operator is None:
            raise SelectorError(f"found '{word}', expected: in, notin, =, ==, !=, gt, lt")
        is_set = operator in (Operator.IN, Operator.NOT_IN)
        values = self._set_of_values() if is_set else [self._exact_value()]
        return valid_requirement(key, operator, values)

    def _exact_value(self) -> str:
        if self._peek() in ("", ","):
            return ""
        value = self._take()
        if value in _SYMBOLS:
            raise SelectorError(f"found '{value}', expected: identifier")
        return value

    def _set_of_values(self) -> list[str]:
        opening = self._take()
        if opening != "(":
            raise SelectorError(f"found '{opening}' expected: '('")
        values = [self._value_in_set()]
        while self._peek() == ",":
            self._take()
            values.append(self._value_in_set())
        if self._peek() != ")":
            raise SelectorError(f"found '{self._peek()}', expected: ',' or ')'")
        self._take()
        return values

    def _value_in_set(self) -> str:
        return "" if self._peek() in (",", ")") else self._identifier_in_set()

    def _identifier_in_set(self) -> str:
        value = self._take()
        if value in _SYMBOLS:
            raise SelectorError(f"found '{value}', expected: ',', ')' or identifier")
        return value


def _tokens(text: str) -> list[str]:
    tokens = []
    position = 0
    while match := _TOKEN.match(text, position):
        position = match.end()
        tokens.append(match[1] or match[2] or "")
        if not tokens[-1]:
            return tokens
    raise SelectorError(f"found '{text[position:]}', expected: a label selector")


class FieldRequirement(msgspec.Struct, frozen=True, gc=False):
    """A condition on a field; a missing field counts as empty."""

    field: str
    equals: bool
    value: str


class FieldSelector(msgspec.Struct, frozen=True, gc=False):
    """Field conditions that must all hold."""

    requirements: tuple[FieldRequirement, ...] = ()

    def matches(self, fields: Mapping[str, str]) -> bool:
        """Whether the selector matches an object with these fields."""
        return all(
            (fields.get(each.field, "") == each.value) == each.equals for each in self.requirements
        )


def parse_field_selector(text: str) -> FieldSelector:
    r"""Parse a field selector such as ``spec.nodeName=,status.phase!=Failed``.

    In values a backslash escapes backslash, comma and equals sign.

    Raises:
        SelectorError: The text does not follow the grammar.
    """
    return FieldSelector(
        tuple(_field_requirement(term, text) for term in _unescaped_split(text) if term)
    )


def _unescaped_split(text: str) -> list[str]:
    return re.findall(r"(?:[^\\,]|\\.|\\$)+", text, re.DOTALL)


def _field_requirement(term: str, text: str) -> FieldRequirement:
    match = _FIELD_TERM.fullmatch(term)
    if match is None:
        raise SelectorError(f"invalid selector: '{text}'; can't understand '{term}'")
    value = _unescaped(match[3])
    return FieldRequirement(match[1], match[2] != "!=", value)


def _unescaped(value: str) -> str:
    found = _FIELD_VALUE.match(value)
    rest = value[found.end() :] if found else value
    if rest[:1] == "\\":
        raise SelectorError(f"invalid field selector: invalid escape sequence: {rest[:2]}")
    if rest:
        code = ord(rest[0])  # Go prints a rune as its number
        raise SelectorError(f"invalid field selector: unescaped character in value: {code}")
    return re.sub(r"\\([\\,=])", r"\1", value)
