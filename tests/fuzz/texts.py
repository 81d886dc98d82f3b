"""Random quantities, selectors and expressions: most nearly valid, some nonsense."""

from __future__ import annotations

from pathlib import Path
from random import Random

_ODD = "\x00\t\n \"'\\,;=!()<>+-_./:%*?|~^&#@"
_ODD += "\u00e9\u03b1\u0661\u00b2\u2212\u202e\u2028\ufeff\U0001f6a2\U00010000"
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_SUFFIXES = (
    *("n", "u", "m", "", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"),
    *(
        "e",
        "E",
        "e3",
        "E-9",
        "e+0",
        "e19",
        "E99999",
        "e-2147483649",
        "e99999999999",
        "K",
        "mi",
        "ki",
        "b",
        "µ",
    ),
)
_NAMES = (
    "app",
    "tier",
    "example.com/role",
    "a" * 63,
    "a" * 64,
    "-a",
    "a-",
    "A.b_c",
    "/x",
    "x/",
    "",
    "in",
    "notin",
)
_EXPRESSIONS = Path(__file__).parent.parent / "unit" / "cel" / "expressions"
_CEL = [
    line
    for path in sorted(_EXPRESSIONS.iterdir())
    for line in path.read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
]
_RELATIONS = (" in ", " notin ", "=", "==", "!=", "<", ">", "===", "=!", " exists ", "\\=", "")


def quantity(rng: Random) -> str:
    """A quantity, or nearly one."""
    number = _digits(rng)
    if rng.random() < 0.4:
        number += "." + _digits(rng)
    text = rng.choice(("", "", "", "+", "-", "--")) + number + rng.choice(_SUFFIXES)
    return _spoilt(text, rng)


def cel_selector(rng: Random) -> str:
    """A CEL selector of documented expressions, or nearly one."""
    text = rng.choice(_CEL)
    while rng.random() < 0.4:
        other = rng.choice(_CEL)
        text = rng.choice(
            (f"({text}) || ({other})", f"{text} && {other}", f"{text} ? true : {other}")
        )
    if rng.random() < 0.3:
        text = text[: rng.randrange(len(text))] + rng.choice(_CEL)[rng.randrange(20) :]
    return _spoilt(text, rng)


def label_selector(rng: Random) -> str:
    """A label selector, or nearly one."""
    return _spoilt(",".join(_label_requirement(rng) for _ in range(_few(rng))), rng)


def field_selector(rng: Random) -> str:
    """A field selector, or nearly one."""
    terms = (
        rng.choice(("spec.nodeName", "status.phase", "metadata.name", "", "\\", "a\\,b", "!"))
        + rng.choice(_RELATIONS)
        + rng.choice(("", "x", "a\\,b", "a\\=b", "\\", "\\x", "=", "!=", "Failed"))
        for _ in range(_few(rng))
    )
    return _spoilt(rng.choice((",", ",,", "\\,")).join(terms), rng)


def _digits(rng: Random) -> str:
    if rng.random() < 0.002:
        return rng.choice("0123456789") * rng.choice((100, 4299, 4300, 4301, 20_000))
    return "".join(
        rng.choices("0123456789", k=rng.choice((0, 1, 1, 2, 3, 5, 9, 17, 18, 19, 20, 40)))
    )


def _few(rng: Random) -> int:
    return 2_000 if rng.random() < 0.0005 else rng.choice((0, 1, 1, 1, 2, 3, 8))


def _label_requirement(rng: Random) -> str:
    values = [_name(rng) for _ in range(rng.choice((0, 1, 1, 2, 3)))]
    operand = f"({','.join(values)})" if rng.random() < 0.5 else "".join(values[:1])
    return rng.choice(("", "", "!", " ")) + _name(rng) + rng.choice(_RELATIONS) + operand


def _name(rng: Random) -> str:
    if rng.random() < 0.7:
        return rng.choice(_NAMES)
    return "".join(rng.choices(_LETTERS + "0123456789-_./", k=rng.choice((1, 2, 5, 12, 300))))


def _spoilt(text: str, rng: Random) -> str:
    """The text; in a third of the cases a character is removed, added, moved or repeated."""
    if not text or rng.random() > 0.33:
        return text
    place = rng.randrange(len(text))
    match rng.randrange(5):
        case 0:
            return text[:place] + text[place + 1 :]
        case 1:
            return text[:place] + rng.choice(_ODD) + text[place:]
        case 2:
            return text[place:] + text[:place]
        case 3:
            return text[:place] + text[place] * rng.choice((2, 3, 70)) + text[place:]
        case _:
            return text[:place] + chr(rng.randrange(0xD800)) + text[place + 1 :]
