"""Text of others, made safe to show in one line of a terminal, a log or an Event."""

from __future__ import annotations


def printable(text: str, kept: str = "") -> str:
    r"""The text with escapes in place of all characters that are not printable.

    Names and messages come from whoever may write objects, files and configurations. Control
    characters in them would end a line of a log, move the cursor of a terminal or hide what stands
    before; so would characters that change the direction of text.

    Args:
        text: The text.
        kept: Characters that stay although they are not printable, such as a line break.

    Examples:
        >>> print(printable("a\x1b[2Jb\n"))
        a\x1b[2Jb\n
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in kept else _escape(each) for each in text)


def printable_json(text: str) -> str:
    r"""JSON that means the same, with ``\u`` escapes in place of characters that are not printable.

    Line breaks stay: outside of strings they are white space, and inside they are escaped already.
    """
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() or each == "\n" else _json_escape(each) for each in text
    )


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
