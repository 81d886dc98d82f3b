"""CEL expressions from a grammar, nearly all of which have types that fit."""

from __future__ import annotations

from random import Random

_INTS = ("0", "1", "-1", "7", "9223372036854775807", "(-9223372036854775807 - 1)", "0x10")
_STRINGS = ('""', '"a100"', "'\\u00e9\\U0001F6A2'", 'r"\\d+"', '"a,b,c"', '"1.2.3"', '"10.0.0.1"')
_PATTERNS = ('"a.*"', '"(a+)+$"', '"["', '"(?i)A1"', '"\\\\d{1,1000}"', '".{0,9}.{0,9}.{0,9}"')
_NAMES = ("x", "y", "z")
_MAX_DEPTH = 4


def cel_expression(rng: Random) -> str:
    """An expression of type bool."""
    return _bool(rng, rng.randrange(_MAX_DEPTH), ())


def _bool(rng: Random, depth: int, names: tuple[str, ...]) -> str:
    if depth <= 0:
        return rng.choice(
            (
                *("true", "false", 'device.driver == "d"', '"model" in device.attributes["d"]'),
                *('has(device.attributes["d"].model)', 'device.attributes["d"].?x.hasValue()'),
            )
        )
    match rng.randrange(8):
        case 0:
            return f"({_bool(rng, depth - 1, names)} && {_bool(rng, depth - 1, names)})"
        case 1:
            return f"({_bool(rng, depth - 1, names)} || {_bool(rng, depth - 1, names)})"
        case 2:
            return f"!{_bool(rng, depth - 1, names)}"
        case 3:
            relation = rng.choice(("==", "!=", "<", "<=", ">", ">="))
            return f"({_int(rng, depth - 1, names)} {relation} {_int(rng, depth - 1, names)})"
        case 4:
            function = rng.choice(("startsWith", "endsWith", "contains"))
            return f"{_string(rng, depth - 1, names)}.{function}({_string(rng, depth - 1, names)})"
        case 5:
            pattern = rng.choice((*_PATTERNS, _string(rng, depth - 1, names)))
            return f"{_string(rng, depth - 1, names)}.matches({pattern})"
        case 6:
            name = rng.choice(_NAMES)
            macro = rng.choice(("all", "exists", "exists_one"))
            body = _bool(rng, depth - 1, (*names, name))
            return f"{_ints(rng, depth - 1, names)}.{macro}({name}, {body})"
        case _:
            return f"({_int(rng, depth - 1, names)} in {_ints(rng, depth - 1, names)})"


def _int(rng: Random, depth: int, names: tuple[str, ...]) -> str:
    if depth <= 0:
        return rng.choice((*_INTS, *names))
    match rng.randrange(5):
        case 0:
            operator = rng.choice(("+", "-", "*", "/", "%"))
            return f"({_int(rng, depth - 1, names)} {operator} {_int(rng, depth - 1, names)})"
        case 1:
            return f"size({_string(rng, depth - 1, names)})"
        case 2:
            return f"{_ints(rng, depth - 1, names)}.sum()"
        case 3:
            condition = _bool(rng, depth - 1, names)
            return f"({condition} ? {_int(rng, depth - 1, names)} : 0)"
        case _:
            return f"int({_string(rng, depth - 1, names)})"


def _string(rng: Random, depth: int, names: tuple[str, ...]) -> str:
    if depth <= 0:
        return rng.choice((*_STRINGS, "device.driver"))
    match rng.randrange(5):
        case 0:
            return f"({_string(rng, depth - 1, names)} + {_string(rng, depth - 1, names)})"
        case 1:
            return f"string({_int(rng, depth - 1, names)})"
        case 2:
            old, new = rng.choice(_STRINGS), rng.choice(_STRINGS)
            return f"{_string(rng, depth - 1, names)}.replace({old}, {new})"
        case 3:
            return f"{_string(rng, depth - 1, names)}.substring({_int(rng, 0, names)})"
        case _:
            pattern = rng.choice(_PATTERNS)
            return f'{_string(rng, depth - 1, names)}.findAll({pattern}).join(",")'


def _ints(rng: Random, depth: int, names: tuple[str, ...]) -> str:
    if depth <= 0:
        length = rng.choice((0, 1, 3, 20))
        return f"[{', '.join(rng.choice((*_INTS, *names)) for _ in range(length))}]"
    name = rng.choice(_NAMES)
    match rng.randrange(3):
        case 0:
            body = _int(rng, depth - 1, (*names, name))
            return f"{_ints(rng, depth - 1, names)}.map({name}, {body})"
        case 1:
            body = _bool(rng, depth - 1, (*names, name))
            return f"{_ints(rng, depth - 1, names)}.filter({name}, {body})"
        case _:
            return f"({_ints(rng, depth - 1, names)} + {_ints(rng, depth - 1, names)})"
