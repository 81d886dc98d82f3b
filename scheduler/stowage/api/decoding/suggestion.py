"""Suggestions for misspelt names."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``; did you mean NAME?`` with the known name that is most alike, or nothing.

    Upper and lower case are alike.
    """
    by_lower_case = {each.lower(): each for each in known}
    found = get_close_matches(name.lower(), by_lower_case, n=1, cutoff=0.75)
    return f"; did you mean {by_lower_case[found[0]]}?" if found else ""
