"""Errors of texts that are no JSON."""

import pytest

from simcluster.apiserver.json_errors import json_error

END = "unexpected end of JSON input"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("", END),
        ('{"a', END),
        ('{"a":', END),
        ("[1,", END),
        ("{a}", "invalid character 'a' looking for beginning of object key string"),
        ('{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ('{"a":1 "b"}', "invalid character '\"' after object key:value pair"),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ("{} x", "invalid character 'x' after top-level value"),
        ("<a/>", "invalid character '<' looking for beginning of value"),
        ("'a'", "invalid character '\\'' looking for beginning of value"),
        ("01", "invalid character '1' after top-level value"),
        ('"a\nb"', "invalid character '\\n' in string literal"),
    ],
)
def test_the_first_error_is_reported_in_the_words_of_go(body: str, message: str) -> None:
    assert json_error(body.encode()) == message
