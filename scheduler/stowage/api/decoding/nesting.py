"""Texts that nest too deeply, told in the same words by every decoder and every Python."""

from __future__ import annotations

TOO_DEEP = "it is nested too deeply"


def problem_of(error: Exception) -> str:
    """What is wrong with a text that could not be read.

    A RecursionError tells of limits of the interpreter, which differ between versions of Python.
    """
    return TOO_DEEP if isinstance(error, RecursionError) else str(error)
