"""What a try of a pod group found out."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

import msgspec

from stowage.api.instructions import AttemptResult
from stowage.api.status import SUCCESS, Status
from stowage.engine.scheduling import Scheduled, SchedulingResult, Unschedulable
from stowage.engine.state.attempt import Attempt
from stowage.engine.state.bindings import BindingCycle
from stowage.framework import PreparedCycle

UNSCHEDULABLE_TEXT = "pod group is unschedulable"
WAITING_TEXT = f"{UNSCHEDULABLE_TEXT}, pod group is waiting for preemption to complete"


class GroupResult(Enum):
    """The result of a group's attempt, as in ``scheduler_podgroup_schedule_attempts_total``."""

    SCHEDULED = "scheduled"
    UNSCHEDULABLE = "unschedulable"
    WAITING_ON_PREEMPTION = "waiting_on_preemption"
    ERROR = "error"


class MemberResult(msgspec.Struct):
    """What a try found out about one member.

    Attributes:
        attempt: The member.
        outcome: The decision about the member alone, after those before it.
        cycle: The member as it is assumed and reserved on a node; None if it is on none.
        attempt_result: The outcome for log and metrics; the number of the decision is still 0.
        permit: The status of Permit, Success or Wait, of a member with a `cycle`.
        rejection: Why the member was taken back, although it found a node: the status of Reserve or
            Permit. Success if it was not.
        waits_for: The Permit plugins that would make the member wait.
        prepared: What PreFilter and PreScore left, if the next member of the class may use it.
    """

    attempt: Attempt
    outcome: SchedulingResult
    attempt_result: AttemptResult
    cycle: BindingCycle | None = None
    permit: Status = SUCCESS
    rejection: Status = SUCCESS
    waits_for: frozenset[str] = frozenset()
    prepared: PreparedCycle | None = None

    @property
    def fits(self) -> bool:
        """Whether the member is on a node, without any eviction."""
        return self.cycle is not None and isinstance(self.outcome, Scheduled)

    @property
    def needs_preemption(self) -> bool:
        """Whether the member is on a node from which others have to be evicted first."""
        return self.cycle is not None and isinstance(self.outcome, Unschedulable)


class GroupOutcome(msgspec.Struct):
    """What a try found out about a group.

    Attributes:
        result: The result.
        message: Why the group is not scheduled; empty if it is.
        members: The members that were tried, in order; after an error the others are missing.
        rejected_elsewhere: The plugins that rejected members in other placements, or the victims of
            the group.
        nominations: UID of a member -> the node where it goes when the victims of the group are
            gone; empty unless the group evicts as a whole.
        victims: The UIDs of the pods that the group, or its members, evicted.
        is_placed: Whether the members with a `cycle` are on their nodes in the cache.
    """

    result: GroupResult
    message: str
    members: list[MemberResult]
    is_placed: bool = False
    rejected_elsewhere: frozenset[str] = frozenset()
    nominations: Mapping[str, str] = msgspec.field(default_factory=dict)
    victims: set[str] = msgspec.field(default_factory=set)

    @property
    def rejecting_plugins(self) -> frozenset[str]:
        """The plugins whose events may let the group in: those that rejected one of its members."""
        plugins = set(self.rejected_elsewhere)
        for member in self.members:
            plugins |= member.waits_for
            if isinstance(member.outcome, Unschedulable):
                plugins |= member.outcome.requeueing_plugins
            if member.rejection.is_rejected and member.rejection.plugin:
                plugins.add(member.rejection.plugin)
        return frozenset(plugins)

    @property
    def is_feasible(self) -> bool:
        """Whether the group fits, perhaps after evictions."""
        return self.result in (GroupResult.SCHEDULED, GroupResult.WAITING_ON_PREEMPTION)

    @property
    def num_placed(self) -> int:
        """The number of members with a `cycle`."""
        return sum(member.cycle is not None for member in self.members)

    @property
    def num_fitting(self) -> int:
        """The number of members that fit."""
        return sum(member.fits for member in self.members)
