"""The exception for a violated invariant of the state."""

from __future__ import annotations


class InvariantViolation(AssertionError):  # noqa: N818 - it names the finding
    """A column or count differs from a recount from the objects.

    Args:
        subject: What was compared.
        expected: The recount.
        found: The column or count.
    """

    def __init__(self, subject: str, expected: object, found: object) -> None:
        super().__init__(f"{subject}: expected {expected}, found {found}")


def expect(subject: str, expected: object, found: object) -> None:
    """Compare a recount with a column or count.

    Raises:
        InvariantViolation: They differ.
    """
    if expected != found:
        raise InvariantViolation(subject, expected, found)
