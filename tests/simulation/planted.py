"""Faults that tests plant in the scheduler, to prove that the simulation finds them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest

from stowage.api.cluster_events import ActionType, EventResource
from tests.simulation.plan import Emphasis
from tests.simulation.run import simulate

MAX_SEEDS_TO_A_FAULT = 120


class PlantedFault(NamedTuple):
    """A fault in the scheduler.

    Attributes:
        owner: The class or module with the attribute to replace.
        plant: Returns the replacement; called with the attribute itself.
        emphasis: Actions and faults that reveal the fault.
        finding: Part of the violation that reports the fault.
        first_seed: First seed of the search; a later start saves time.
    """

    owner: Any
    attribute: str
    plant: Callable[[Any], Any]
    emphasis: Emphasis
    finding: str
    first_seed: int = 0


def returns(answer: Any) -> Callable[[Any], Any]:
    """A plant that returns a constant."""
    return lambda _usual: lambda *_arguments, **_options: answer


def does_not_register(resource: EventResource, action: ActionType) -> Callable[[Any], Any]:
    """A plant that removes one of the plugin's registered events."""

    def plant(usual: Any) -> Any:
        return lambda self: tuple(
            each
            for each in usual(self)
            if each.event.resource is not resource or not each.event.action & action
        )

    return plant


@contextmanager
def planted(fault: PlantedFault) -> Iterator[None]:
    """Plant a fault in the scheduler, and take it out at the end."""
    usual = getattr(fault.owner, fault.attribute)
    with patch.object(fault.owner, fault.attribute, fault.plant(usual)):
        yield


def is_found(fault: PlantedFault, seed: int) -> bool:
    """Whether the life of a seed reports the fault that is planted."""
    violations = simulate(seed, fault.emphasis).violations
    return any(fault.finding in violation for violation in violations)


def assert_found(fault: PlantedFault) -> None:
    """Plant a fault, and simulate seeds until one finds it."""
    with planted(fault):
        for seed in range(fault.first_seed, fault.first_seed + MAX_SEEDS_TO_A_FAULT):
            if is_found(fault, seed):
                return
    pytest.fail(f"{MAX_SEEDS_TO_A_FAULT} seeds did not find the fault")
