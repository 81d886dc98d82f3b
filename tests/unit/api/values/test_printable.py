"""Text of others on one line, and JSON that a terminal can show."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stowage.api.values.printable import printable, printable_json


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("web-0", "web-0"),
        ("größe \U0001f6a2", "größe \U0001f6a2"),
        ("a\nb\r", "a\\nb\\r"),
        ("\x1b[2J\x9b1m\x07", "\\x1b[2J\\x9b1m\\x07"),
        ("a\u202eb\u2066", "a\\u202eb\\u2066"),
        ("\ud83d", "\\ud83d"),
    ],
)
def test_a_character_that_is_not_printable_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text())
def test_any_text_becomes_one_printable_line(text: str) -> None:
    assert printable(text).isprintable()


@given(st.recursive(st.text(), lambda each: st.lists(each) | st.dictionaries(st.text(), each)))
def test_printable_json_means_the_same(value: object) -> None:
    text = json.dumps(value, ensure_ascii=False, indent=1)
    shown = printable_json(text)
    assert json.loads(shown) == value
    assert shown.replace("\n", "").isprintable()
