"""What is said of a text that is no JSON."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcluster.apiserver.json_errors import json_error

END = "unexpected end of JSON input"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("", END),
        ('{"a', END),
        ('{"a":', END),
        ("[1,", END),
        ("nul", END),
        ("-", END),
        ("{a}", "invalid character 'a' looking for beginning of object key string"),
        ('{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ('{"a":1 "b"}', "invalid character '\"' after object key:value pair"),
        ("[1 2]", "invalid character '2' after array element"),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ("{} x", "invalid character 'x' after top-level value"),
        ("<a/>", "invalid character '<' looking for beginning of value"),
        ("'a'", "invalid character '\\'' looking for beginning of value"),
        ("trie", "invalid character 'i' in literal true (expecting 'u')"),
        ("-x", "invalid character 'x' in numeric literal"),
        ("1.x", "invalid character 'x' after decimal point in numeric literal"),
        ("1ex", "invalid character 'x' in exponent of numeric literal"),
        ("01", "invalid character '1' after top-level value"),
        ('"a\nb"', "invalid character '\\n' in string literal"),
        ('"\\x"', "invalid character 'x' in string escape code"),
        ('"\\u00g0"', "invalid character 'g' in \\u hexadecimal character escape"),
    ],
)
def test_the_first_error_is_told_in_the_words_of_go(body: str, message: str) -> None:
    assert json_error(body.encode()) == message


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        st.lists,
    )
)
def test_a_text_cut_short_has_merely_ended(value: object) -> None:
    whole = json.dumps([value, {"k": value}]).encode()
    for length in range(len(whole)):
        assert json_error(whole[:length]) == END
