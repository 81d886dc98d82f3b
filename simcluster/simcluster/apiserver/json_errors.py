"""What a Go server says of a text that is no JSON: the words of ``encoding/json``."""

_SPACE = b" \t\r\n"
_DIGITS = b"0123456789"
_HEX = b"0123456789abcdefABCDEF"
_ESCAPED = b'bfnrt\\/"'
_LITERALS = {ord("t"): b"true", ord("f"): b"false", ord("n"): b"null"}
_END = "unexpected end of JSON input"


class _SyntaxError(Exception):
    """The text ends too early, or holds a character where it must not be."""


def json_error(body: bytes) -> str:
    """The message of the first error in a text; one that has none has merely ended too early."""
    try:
        _Scanner(body).check()
    except _SyntaxError as error:
        return str(error)
    return _END


class _Scanner:
    """Walks over one JSON text and stops at the first error."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def check(self) -> None:
        """Raise what is wrong."""
        open_: list[int] = []
        while True:
            is_whole = self._open_or_skip(open_)
            while is_whole:
                if not open_:
                    self._expect_end()
                    return
                is_whole = self._is_closed_after_item(open_)

    def _open_or_skip(self, open_: list[int]) -> bool:
        """Pass a value; whether it is whole, or only opened."""
        self._skip_space()
        found = self._peek()
        if found in b"{[":
            self._at += 1
            open_.append(found)
            return self._is_empty(open_)
        if found == ord('"'):
            self._string()
        elif found in _LITERALS:
            self._literal(_LITERALS[found])
        elif found == ord("-") or found in _DIGITS:
            self._number()
        else:
            raise self._wrong("looking for beginning of value")
        return True

    def _is_empty(self, open_: list[int]) -> bool:
        self._skip_space()
        if self._peek() == (ord("}") if open_[-1] == ord("{") else ord("]")):
            self._at += 1
            open_.pop()
            return True
        if open_[-1] == ord("{"):
            self._key()
        return False

    def _is_closed_after_item(self, open_: list[int]) -> bool:
        """Pass what follows an item; whether it was the last one of what is open."""
        self._skip_space()
        is_object = open_[-1] == ord("{")
        found = self._peek()
        if found == (ord("}") if is_object else ord("]")):
            self._at += 1
            open_.pop()
            return True
        if found != ord(","):
            raise self._wrong("after object key:value pair" if is_object else "after array element")
        self._at += 1
        if is_object:
            self._key()
        return False

    def _key(self) -> None:
        self._skip_space()
        if self._peek() != ord('"'):
            raise self._wrong("looking for beginning of object key string")
        self._string()
        self._skip_space()
        if self._peek() != ord(":"):
            raise self._wrong("after object key")
        self._at += 1

    def _string(self) -> None:
        self._at += 1
        while (found := self._peek()) != ord('"'):
            if found < ord(" "):
                raise self._wrong("in string literal")
            self._at += 1
            if found == ord("\\"):
                self._escape()
        self._at += 1

    def _escape(self) -> None:
        found = self._peek()
        if found != ord("u") and found not in _ESCAPED:
            raise self._wrong("in string escape code")
        self._at += 1
        if found == ord("u"):
            for _ in range(4):
                if self._peek() not in _HEX:
                    raise self._wrong("in \\u hexadecimal character escape")
                self._at += 1

    def _literal(self, word: bytes) -> None:
        for expected in word:
            if self._peek() != expected:
                raise self._wrong(f"in literal {word.decode()} (expecting {_quoted(expected)})")
            self._at += 1

    def _number(self) -> None:
        if self._peek() == ord("-"):
            self._at += 1
        if self._peek() == ord("0"):
            self._at += 1
        else:
            self._digits("in numeric literal")
        if self._next_is(b"."):
            self._digits("after decimal point in numeric literal")
        if self._next_is(b"eE"):
            self._next_is(b"+-")
            self._digits("in exponent of numeric literal")

    def _digits(self, where: str) -> None:
        if self._peek() not in _DIGITS:
            raise self._wrong(where)
        while self._next_is(_DIGITS):
            pass

    def _next_is(self, accepted: bytes) -> bool:
        is_next = self._at < len(self._body) and self._body[self._at] in accepted
        self._at += is_next
        return is_next

    def _expect_end(self) -> None:
        self._skip_space()
        if self._at < len(self._body):
            raise self._wrong("after top-level value")

    def _skip_space(self) -> None:
        while self._next_is(_SPACE):
            pass

    def _peek(self) -> int:
        if self._at >= len(self._body):
            raise _SyntaxError(_END)
        return self._body[self._at]

    def _wrong(self, where: str) -> _SyntaxError:
        return _SyntaxError(f"invalid character {_quoted(self._body[self._at])} {where}")


def _quoted(byte: int) -> str:
    """A byte as Go quotes it."""
    if byte == ord("'"):
        return "'\\''"
    character = chr(byte)
    if byte == ord("\\") or not character.isprintable():
        character = repr(character)[1:-1]
    return f"'{character}'"
