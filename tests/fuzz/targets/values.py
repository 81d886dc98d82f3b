"""Quantities and selectors, CEL expressions, and objects of the API."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from stowage.cel import (
    CelCompileError,
    CelRuntimeError,
    Device,
    Selector,
    Version,
    compile_selector,
)
from stowage.cel.evaluation.frame import COST_LIMIT
from tests.fuzz import objects, texts
from tests.fuzz.campaign import Finding
from tests.fuzz.grammar import cel_expression
from tests.fuzz.trials import (
    EngineTrial,
    try_field_selector,
    try_label_selector,
    try_quantity,
)

_OBJECTS_PER_ENGINE = 200
_DEVICES = (
    Device("d", {"model": "a100", "version": Version("1.2.3")}, {"memory": "80Gi"}),
    Device(
        "gpu.example.com",
        {"model": "", "count": 2**63 - 1, "shared": True, "gpu.example.com/name": "a/b"},
        {"memory": "1", "cores": "0"},
    ),
)


class TextTarget:
    """Texts of one kind, which are accepted or refused.

    Args:
        name: See `Target`.
        make: Makes a text.
        is_accepted: Whether a text is accepted; raises an exception if a rule breaks.
    """

    def __init__(
        self, name: str, make: Callable[[Random], str], is_accepted: Callable[[str], bool]
    ) -> None:
        self.name = name
        self.make = make
        self._is_accepted = is_accepted

    def run(self, given: str) -> str:
        return "accepted" if self._is_accepted(given) else "rejected"

    def close(self) -> None:
        """Nothing is held."""


def quantities() -> TextTarget:
    """Quantities; the value is computed again with fractions."""
    return TextTarget("quantities", texts.quantity, try_quantity)


def label_selectors() -> TextTarget:
    """Label selectors; the text of what was read has the same meaning."""
    return TextTarget("labels", texts.label_selector, try_label_selector)


def field_selectors() -> TextTarget:
    """Field selectors."""
    return TextTarget("fields", texts.field_selector, try_field_selector)


class CelTarget:
    """CEL selectors: each is refused, fails, or answers, the same twice, within its cost limit."""

    name = "cel"

    def make(self, rng: Random) -> str:
        if rng.random() < 0.5:
            return cel_expression(rng)
        return texts.cel_selector(rng)

    def run(self, given: str) -> str:
        try:
            selector = compile_selector(given)
        except CelCompileError as error:
            if not str(error):
                raise Finding("refused without a reason") from error
            return "rejected"
        answers = [self._answer(selector, device) for device in _DEVICES]
        if answers != [self._answer(selector, device) for device in _DEVICES]:
            raise Finding("a second evaluation differs")
        return "evaluated" if all(answers) else "failed"

    def close(self) -> None:
        """Nothing is held."""

    def _answer(self, selector: Selector, device: Device) -> tuple[bool, int] | None:
        try:
            answer, cost = selector.evaluate(device)
        except CelRuntimeError as error:
            if not str(error):
                raise Finding("fails without a reason") from error
            return None
        if not isinstance(answer, bool) or not 0 <= cost <= COST_LIMIT:
            raise Finding(f"answers {answer!r} at the cost {cost}")
        return answer, cost


class ObjectTarget:
    """API objects, each shown to an engine that goes on with valid pods."""

    name = "objects"

    def __init__(self) -> None:
        self._trial = EngineTrial()
        self._num_shown = 0

    def make(self, rng: Random) -> tuple[str, bytes]:
        return objects.odd_object(rng)

    def run(self, given: tuple[str, bytes]) -> str:
        self._num_shown += 1
        if self._num_shown % _OBJECTS_PER_ENGINE == 0:
            self._trial.check()
        return "accepted" if self._trial.try_object(*given) else "rejected"

    def close(self) -> None:
        """Check the engine a last time."""
        self._trial.check()
