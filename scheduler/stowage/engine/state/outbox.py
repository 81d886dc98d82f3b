"""The instructions that the call in progress returns."""

from __future__ import annotations

from stowage.api.instructions import Instruction, ReportProblem


class Outbox:
    """Collects instructions in order."""

    __slots__ = ("_instructions",)

    def __init__(self) -> None:
        self._instructions: list[Instruction] = []

    def emit(self, instruction: Instruction) -> None:
        """Add an instruction."""
        self._instructions.append(instruction)

    def report(self, subject: str, problem: str) -> None:
        """Add a `ReportProblem`: something is wrong, and the engine goes on."""
        self._instructions.append(ReportProblem(subject, problem))

    def take(self) -> list[Instruction]:
        """Return the instructions and start an empty list."""
        taken, self._instructions = self._instructions, []
        return taken
