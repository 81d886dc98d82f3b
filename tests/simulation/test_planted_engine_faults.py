"""The simulation notices exceptions that the engine reports before it goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Never

import pytest

from stowage.plugins.node_resources import hints
from stowage.plugins.volumes.limits import NodeVolumeLimits
from stowage.state.cache import ClusterCache
from tests.simulation.plan import Emphasis
from tests.simulation.planted import PlantedFault, assert_found

_USUAL = Emphasis()


def _raises(_usual: Any) -> Callable[..., Never]:
    def fail(*_arguments: object) -> Never:
        raise ArithmeticError("planted")

    return fail


PLANTED = {
    "an event handler raises": PlantedFault(
        ClusterCache,
        "update_budget",
        _raises,
        _USUAL,
        "reports about DisruptionBudgetSeen: ArithmeticError('planted')",
    ),
    "a Filter plugin raises": PlantedFault(
        NodeVolumeLimits,
        "filter",
        _raises,
        _USUAL,
        'failed at running "NodeVolumeLimits" filter plugin: ArithmeticError',
    ),
    "a queueing hint raises": PlantedFault(
        hints,
        "after_pod_change",
        _raises,
        _USUAL,
        "reports about scheduling queue: ",
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found(name: str) -> None:
    assert_found(PLANTED[name])
