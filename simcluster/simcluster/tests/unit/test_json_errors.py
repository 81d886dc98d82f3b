"""Errors for invalid JSON."""

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
        ("nul", END),
        ("[1 2]", "invalid character '2' after array element"),
        ('{"a":[[], {"b": "[{"} 2]}', "invalid character '2' after array element"),
        ('{"a":[1] 2}', "invalid character '2' after object key:value pair"),
        ("trie", "invalid character 'i' in literal true (expecting 'u')"),
        ("not json", "invalid character 'o' in literal null (expecting 'u')"),
        ("{a}", "invalid character 'a' looking for beginning of object key string"),
        ('{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ('{"a":1 "b"}', "invalid character '\"' after object key:value pair"),
        ('{"a":1 , \n}', "invalid character '}' looking for beginning of object key string"),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ("[1, ]", "invalid character ']' looking for beginning of value"),
        ('{"a":1,', END),
        ("[1e400]", "json: cannot unmarshal number 1e400 into Go value of type float64"),
        ("{} x", "invalid character 'x' after top-level value"),
        ("<a/>", "invalid character '<' looking for beginning of value"),
        ("'a'", "invalid character '\\'' looking for beginning of value"),
        ("01", "invalid character '1' after top-level value"),
        ('"a\nb"', "invalid character '\\n' in string literal"),
    ],
)
def test_the_first_error_has_the_message_of_go(body: str, message: str) -> None:
    assert json_error(body.encode()) == message
