"""The parser: recursive descent, with a loop for chains of operators and members.

The grammar is that of ``CEL.g4`` of cel-go with optional syntax (``a.?b``, ``a[?b]``). Message
literals (``Name{field: value}``) are refused, since the environment declares no message that a
selector can make.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stowage.cel.errors import CelCompileError, CelMacroError
from stowage.cel.syntax.issues import Issues
from stowage.cel.syntax.lexer import Token, tokens_of
from stowage.cel.syntax.literals import (
    bytes_value,
    double_value,
    int_value,
    string_value,
    uint_value,
)
from stowage.cel.syntax.macros import expand_macro
from stowage.cel.syntax.tree import (
    AND,
    CONDITIONAL,
    INDEX,
    NEGATE,
    NOT,
    OPTIONAL_INDEX,
    OR,
    Call,
    Entry,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    Select,
)

MAX_DEPTH = 250
"""The deepest nesting, ``MaxRecursionDepth`` of cel-go's parser."""

_RESERVED = frozenset(
    {
        *("as", "break", "const", "continue", "else", "false", "for", "function", "if", "import"),
        *("in", "let", "loop", "package", "namespace", "null", "return", "true", "var", "void"),
        "while",
    }
)
_KEYWORDS = frozenset(["in", "true", "false", "null"])
_LEVELS: tuple[dict[str, str], ...] = (
    {"||": OR},
    {"&&": AND},
    {"<": "_<_", "<=": "_<=_", ">": "_>_", ">=": "_>=_", "==": "_==_", "!=": "_!=_", "in": "@in"},
    {"+": "_+_", "-": "_-_"},
    {"*": "_*_", "/": "_/_", "%": "_%_"},
)
_OPERATORS = {
    text: (level, function)
    for level, operators in enumerate(_LEVELS)
    for text, function in operators.items()
}
_NUMBERS: dict[str, Callable[[str], Any]] = {
    "int": int_value,
    "uint": uint_value,
    "double": double_value,
    "string": string_value,
    "bytes": bytes_value,
}
_CONSTANTS = {"true": True, "false": False, "null": None}
_OPENING, _CLOSING = "[{(", "]})"
_TERM = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', "
    "NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)
"""What a term can begin with, as the parser of cel-go lists it."""


def parse(text: str) -> Node:
    """Parse an expression and expand its macros.

    Raises:
        CelCompileError: the text is not an expression, too long or nested too deeply.
    """
    try:
        return _Parser(text).parse()
    except RecursionError:
        raise CelCompileError(
            f"compilation failed: expression recursion limit exceeded: {MAX_DEPTH}"
        ) from None


class _Parser:
    def __init__(self, text: str) -> None:
        self._issues = Issues(text)
        self._tokens = tokens_of(text, self._issues)
        self._next = 0
        self._depth = 0

    def parse(self) -> Node:
        node = self._expression()
        if self._token.kind != "end":
            raise self._unexpected("<EOF>", self._tokens[self._next + 1].kind == "end")
        self._issues.raise_any()
        return node

    @property
    def _token(self) -> Token:
        return self._tokens[self._next]

    def _at(self, text: str) -> bool:
        token = self._token
        return token.text == text and token.kind in ("operator", "name")

    def _accept(self, text: str) -> bool:
        found = self._at(text)
        self._next += found
        return found

    def _expect(self, text: str) -> None:
        if self._accept(text):
            return
        token = self._token
        if token.kind == "end" and text in _CLOSING and self._open_brackets() == 1:
            raise self._error(f"Syntax error: missing '{text}' at '<EOF>'", token.position)
        following = self._tokens[self._next + 1].text if token.kind != "end" else ""
        raise self._unexpected(f"'{text}'", following == text)

    def _open_brackets(self) -> int:
        before = [each.text for each in self._tokens[: self._next] if each.kind == "operator"]
        return sum((each in _OPENING) - (each in _CLOSING) for each in before)

    def _unexpected(self, expected: str, extraneous: bool = False) -> CelCompileError:
        """The error at this token; it is extraneous if all is well behind it."""
        token = self._token
        kind = "extraneous" if extraneous else "mismatched"
        return self._error(
            f"Syntax error: {kind} input '{token.text or '<EOF>'}' expecting {expected}",
            token.position,
        )

    def _error(self, message: str, position: int) -> CelCompileError:
        self._issues.report(position, message)
        return self._issues.error()

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise CelCompileError(
                f"compilation failed: expression recursion limit exceeded: {MAX_DEPTH}"
            )

    def _expression(self) -> Node:
        self._deeper()
        node = self._operators(0)
        position = self._token.position
        if self._accept("?"):
            chosen = self._operators(0)
            self._expect(":")
            node = Call(position, CONDITIONAL, None, [node, chosen, self._expression()])
        self._depth -= 1
        return node

    def _operators(self, lowest: int) -> Node:
        """A chain of left-associative operators of level `lowest` and above.

        Terms of ``&&`` or ``||`` become arguments of one call, others one level of the tree each.
        """
        node = self._unary()
        terms: list[Node] = []  # of the last call, if it may take more
        last = ""
        length = 0
        while (found := self._operator()) is not None and found[0] >= lowest:
            (level, function), position = found, self._token.position
            self._next += 1
            right = self._operators(level + 1)
            if function == last and function in (AND, OR):
                terms.append(right)
                continue
            if function not in (AND, OR):
                length += 1
                self._deeper()
            terms = [node, right]
            node = Call(position, function, None, terms)
            last = function
        self._depth -= length
        return node

    def _operator(self) -> tuple[int, str] | None:
        token = self._token
        return _OPERATORS.get(token.text) if token.kind in ("operator", "name") else None

    def _unary(self) -> Node:
        position = self._token.position
        for operator, function in (("!", NOT), ("-", NEGATE)):
            count = 0
            while self._at(operator) and (count or not self._at_negative_number()):
                self._next += 1
                count += 1
            if count:
                operand = self._member()
                return Call(position, function, None, [operand]) if count % 2 else operand
        return self._member()

    def _at_negative_number(self) -> bool:
        return self._at("-") and self._tokens[self._next + 1].kind in ("int", "double")

    def _member(self) -> Node:
        node = self._primary()
        length = 0
        while self._token.kind == "operator" and self._token.text in (".", "["):
            length += 1
            self._deeper()
            node = self._dotted(node) if self._at(".") else self._indexed(node)
        self._depth -= length
        return node

    def _dotted(self, operand: Node) -> Node:
        dot = self._token.position
        self._next += 1
        optional = self._accept("?")
        token = self._name()
        if optional:
            return Select(dot, operand, token.text, optional=True)
        call = self._token.position
        if self._accept("("):
            return self._call(call, token.text, operand)
        return Select(dot, operand, token.text)

    def _indexed(self, operand: Node) -> Node:
        position = self._token.position
        self._next += 1
        function = OPTIONAL_INDEX if self._accept("?") else INDEX
        index = self._expression()
        self._expect("]")
        return Call(position, function, None, [operand, index])

    def _name(self) -> Token:
        token = self._token
        if token.kind != "name" or token.text in _KEYWORDS:
            raise self._unexpected("IDENTIFIER")
        self._next += 1
        return token

    def _call(self, position: int, function: str, target: Node | None) -> Node:
        args: list[Node] = []
        if not self._accept(")"):
            args.append(self._expression())
            while self._accept(","):
                args.append(self._expression())
            self._expect(")")
        call = Call(position, function, target, args)
        try:
            return expand_macro(call)
        except CelMacroError as error:
            raise self._error(str(error), error.position) from None

    def _primary(self) -> Node:
        token = self._token
        if token.kind in _NUMBERS or self._at_negative_number():
            return self._literal()
        if token.kind == "name" and token.text in _CONSTANTS:
            self._next += 1
            return Literal(token.position, _CONSTANTS[token.text])
        if self._accept("("):
            node = self._expression()
            self._expect(")")
            return node
        if self._accept("["):
            return self._list(token.position)
        if self._accept("{"):
            return self._map(token.position)
        return self._named()

    def _literal(self) -> Node:
        position = self._token.position
        sign = "-" if self._accept("-") else ""
        token = self._token
        self._next += 1
        try:
            return Literal(position, _NUMBERS[token.kind](sign + token.text))
        except CelCompileError as error:
            raise self._error(str(error), position) from None

    def _named(self) -> Node:
        position = self._token.position
        dot = "." if self._accept(".") else ""
        if not dot and self._token.kind in ("operator", "end"):
            following = self._token.kind == "operator" and self._begins_term(self._next + 1)
            raise self._unexpected(_TERM, following)
        token = self._name()
        if token.text in _RESERVED:
            raise self._error(f"reserved identifier: {token.text}", position)
        call = self._token.position
        if self._accept("("):
            return self._call(call, dot + token.text, None)
        return Ident(position, dot + token.text)

    def _begins_term(self, index: int) -> bool:
        token = self._tokens[index]
        if token.kind == "operator":
            return token.text in "[{(.-!"
        return token.kind != "end" and token.text != "in"

    def _list(self, position: int) -> Node:
        elements: list[Node] = []
        optional: set[int] = set()
        if self._accept(","):  # the grammar allows a comma after no element, too
            self._expect("]")
            return ListLiteral(position, elements)
        while not self._accept("]"):
            if self._accept("?"):
                optional.add(len(elements))
            elements.append(self._expression())
            if not self._separated("]"):
                raise self._unexpected("{']', ','}")
        return ListLiteral(position, elements, frozenset(optional))

    def _map(self, position: int) -> Node:
        entries: list[Entry] = []
        if self._accept(","):
            self._expect("}")
            return MapLiteral(position, entries)
        while not self._accept("}"):
            optional = self._accept("?")
            key = self._expression()
            self._expect(":")
            entries.append(Entry(key, self._expression(), optional))
            if not self._separated("}"):
                raise self._unexpected("{'}', ','}")
        return MapLiteral(position, entries)

    def _separated(self, end: str) -> bool:
        return self._accept(",") or self._at(end)
