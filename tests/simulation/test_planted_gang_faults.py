"""The simulation finds each fault of pod groups that is planted in the scheduler."""

from __future__ import annotations

from typing import Any

import pytest

from stowage.api.status import SUCCESS
from stowage.engine.pod_groups import group_cycle, topology
from stowage.operator.watch.pod_groups import PodGroupWatch
from stowage.operator.watch.reflector import Reflector
from stowage.plugins.gang_scheduling import GangScheduling
from stowage.state.pods.pod_groups import PodGroups
from tests.simulation.plan import Emphasis
from tests.simulation.planted import PlantedFault, assert_found, returns

_GANGS = Emphasis(often=frozenset(["create_gang", "create_rivals"]), has_gangs=True)
_RACKS = Emphasis(often=frozenset(["create_gang", "add_member"]), has_gangs=True, are_in_racks=True)
_UNSERVED = Emphasis(often=frozenset(["create_gang"]), has_gangs=True)


def _overlooks_some_groups(usual: Any) -> Any:
    def add_seen(self: Any, found: Any, events: list[Any]) -> None:
        if "PodGroup" not in self.kind or not found.metadata.uid.endswith("7"):
            usual(self, found, events)

    return add_seen


def _forgets_one(usual: Any) -> Any:
    """A take-back that leaves the first member on its node."""

    def take_back(state: Any, outcome: Any) -> Any:
        outcome.members = outcome.members[1:]
        return usual(state, outcome)

    return take_back


PLANTED = {
    "the first member that fits is bound": PlantedFault(
        GangScheduling,
        "permit",
        returns((SUCCESS, 0.0)),
        _GANGS,
        "has been left with only",
        first_seed=35,
    ),
    "a try that failed leaves a member on its node": PlantedFault(
        group_cycle, "take_back", _forgets_one, _GANGS, "still"
    ),
    "a pod that was bound stays no member": PlantedFault(
        PodGroups, "see_assigned", returns(None), _GANGS, "members"
    ),
    "a late member goes to another rack than its companions": PlantedFault(
        topology, "_domain_of_scheduled", returns(None), _RACKS, "its group has racks"
    ),
    "some groups are overlooked": PlantedFault(
        Reflector, "_add_seen", _overlooks_some_groups, _GANGS, "in the group"
    ),
    "the engine does not learn that a kind is not served": PlantedFault(
        PodGroupWatch, "_tell", returns(None), _UNSERVED, "is pending without a reason", 9
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found(name: str) -> None:
    assert_found(PLANTED[name])
