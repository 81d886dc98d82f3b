"""Tokens of an expression, as in ``CEL.g4`` of cel-go."""

from __future__ import annotations

import re
from typing import NamedTuple

from stowage.cel.errors import CelCompileError
from stowage.cel.syntax.issues import Issues

MAX_CODE_POINTS = 100_000
"""The longest expression that cel-go parses. The API server accepts 10 KiB."""

_ESCAPE = (
    r"\\(?:[abfnrtv\"'\\?`]|[0-3][0-7]{2}|[xX][0-9a-fA-F]{2}"
    r"|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
)
_STRING = "|".join(
    [
        r'[rR]"""(?s:.)*?"""',
        r"[rR]'''(?s:.)*?'''",
        r'[rR]"[^"\n\r]*"',
        r"[rR]'[^'\n\r]*'",
        rf'"""(?:{_ESCAPE}|[^\\])*?"""',
        rf"'''(?:{_ESCAPE}|[^\\])*?'''",
        rf'"(?:{_ESCAPE}|[^\\"\n\r])*"',
        rf"'(?:{_ESCAPE}|[^\\'\n\r])*'",
    ]
)
_TOKEN = re.compile(
    rf"(?P<skip>[\t \r\n\f]+|//[^\n]*)"
    rf"|(?P<bytes>[bB](?:{_STRING}))"
    rf"|(?P<string>{_STRING})"
    r"|(?P<double>\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?)"
    r"|(?P<uint>0x[0-9a-fA-F]+[uU]|\d+[uU])"
    r"|(?P<int>0x[0-9a-fA-F]+|\d+)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<operator>==|!=|<=|>=|&&|\|\||[-!?:<>+*/%.,()\[\]{}])",
    re.ASCII,
)


_BROKEN = r"\\(?:[xXuU][0-9a-fA-F]*|[0-3][0-7]*)?"
_NO_TOKEN = re.compile(
    rf"(?s:\"(?:{_ESCAPE}|[^\\\"\n\r])*(?:{_BROKEN})?.?"
    rf"|'(?:{_ESCAPE}|[^\\'\n\r])*(?:{_BROKEN})?.?"
    r"|[=&|]?.)"
)
"""What cel-go's lexer skips where no token begins: up to the character that fits nothing."""


class Token(NamedTuple):
    """A token; its kind is the name of a group of the pattern, or ``end``."""

    kind: str
    text: str
    position: int


def tokens_of(text: str, issues: Issues) -> list[Token]:
    """Split `text` into tokens, without white space and comments; the last one is the end.

    What is no token is reported to `issues`, and left out.
    """
    if len(text) > MAX_CODE_POINTS:
        raise CelCompileError(
            "compilation failed: expression code point size exceeds limit: "
            f"size: {len(text)}, limit {MAX_CODE_POINTS}"
        )
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise CelCompileError("compilation failed: the expression is not valid Unicode")
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            skipped = text[position : _end_of_no_token(text, position)]
            issues.report(position, f"Syntax error: token recognition error at: '{skipped}'")
            position += len(skipped)
            continue
        if match.lastgroup != "skip":
            tokens.append(Token(match.lastgroup, match[0], position))
        position = match.end()
    tokens.append(Token("end", "", len(text)))
    return tokens


def _end_of_no_token(text: str, position: int) -> int:
    match = _NO_TOKEN.match(text, position)
    return match.end() if match else position + 1
