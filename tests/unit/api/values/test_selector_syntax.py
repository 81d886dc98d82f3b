"""Selectors in text form are parsed as in kubectl and the API server."""

import re

import pytest

from stowage.api.decoding.errors import SelectorError
from stowage.api.values.selector_syntax import parse_field_selector, parse_label_selector


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("", ""),
        ("app = web , tier!=db", "app=web,tier!=db"),
        ("b in (y,x),!a", "!a,b in (x,y)"),
        ("app in ()", "app in ()"),
        ("app in (,web)", "app in (,web)"),
        ("in in (in, notin)", "in in (in,notin)"),
        ("n>1,n<20", "n>1,n<20"),
        ("app==", "app=="),
    ],
)
def test_a_label_selector_prints_in_canonical_form(text: str, canonical: str) -> None:
    assert str(parse_label_selector(text)) == canonical


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("app,", "found '', expected: identifier after ','"),
        ("(app)", "found '(', expected: !, identifier, or 'end of string'"),
        ("app in web", "found 'web' expected: '('"),
        ("app in (web", "found '', expected: ',' or ')'"),
        ("app in (=)", "found '=', expected: ',', ')' or identifier"),
        ("app web", "found 'web', expected: in, notin, =, ==, !=, gt, lt"),
        ("!app=web", "found '=', expected: ',' or 'end of string'"),
        ("!=web", "found '!=', expected: !, identifier, or 'end of string'"),
        ("app=(", "found '(', expected: identifier"),
        ("! ,", "found ',', expected: identifier"),
        ("n>x", "the value must be an integer"),
        ("a/b/c", "a valid label key must consist"),
    ],
)
def test_an_invalid_label_selector_is_an_error_with_the_reason(text: str, complaint: str) -> None:
    with pytest.raises(SelectorError) as refusal:
        parse_label_selector(text)
    assert complaint in str(refusal.value)


def test_a_field_selector_treats_absent_fields_as_empty() -> None:
    selector = parse_field_selector("spec.nodeName=,status.phase!=Failed,spec.schedulerName==ours")
    assert selector.matches({"spec.schedulerName": "ours", "status.phase": "Pending"})
    assert not selector.matches({"spec.schedulerName": "ours", "status.phase": "Failed"})
    assert not selector.matches({"spec.schedulerName": "ours", "spec.nodeName": "n"})


def test_field_values_can_escape_commas_equals_signs_and_backslashes() -> None:
    selector = parse_field_selector(r"note=a\,b\=c\\,name=x")
    assert selector.matches({"note": "a,b=c\\", "name": "x"})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("name", "invalid selector: 'name'; can't understand 'name'"),
        ("a=b=c", "unescaped character in value: 61"),
        (r"a=\x", r"invalid escape sequence: \x"),
    ],
)
def test_an_invalid_field_selector_is_an_error(text: str, why: str) -> None:
    with pytest.raises(SelectorError, match=re.escape(why)):
        parse_field_selector(text)


def test_empty_terms_of_a_field_selector_are_skipped() -> None:
    assert parse_field_selector(",a=b,").matches({"a": "b"})
    assert parse_field_selector("").matches({})
