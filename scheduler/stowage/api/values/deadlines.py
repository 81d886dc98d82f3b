"""Deadlines in seconds, of which there may be none."""

from __future__ import annotations


def earlier(one: float | None, other: float | None) -> float | None:
    """The earlier of two deadlines; None if there is neither.

    Examples:
        >>> earlier(3.0, None), earlier(3.0, 2.0), earlier(None, None)
        (3.0, 2.0, None)
    """
    if one is None or (other is not None and other < one):
        return other
    return one
