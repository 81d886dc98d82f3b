"""The finding that the state contradicts itself."""

from __future__ import annotations


class InvariantViolation(AssertionError):  # noqa: N818 - it names the finding
    """The state contradicts itself.

    Attributes:
        subject: What was compared.
        expected: What the objects say.
        found: What the columns say.
    """

    def __init__(self, subject: str, expected: object, found: object) -> None:
        super().__init__(f"{subject}: expected {expected}, found {found}")
        self.subject = subject
        self.expected = expected
        self.found = found


def expect(subject: str, expected: object, found: object) -> None:
    """Compare what the objects say with what the columns say.

    Raises:
        InvariantViolation: They differ.
    """
    if expected != found:
        raise InvariantViolation(subject, expected, found)
