"""The answer about a pod group as values."""

from __future__ import annotations

import msgspec

from stowage.analysis.explanation import SchedulingExplanation

SCHEDULED = "Scheduled"
FITS = "Fits"
WAITS_FOR_PREEMPTION = "WaitsForPreemption"
UNSCHEDULABLE = "Unschedulable"
WAITS_FOR_MEMBERS = "WaitsForMembers"
WAITS_FOR_GROUP = "WaitsForGroup"
WAITS_AT_PERMIT = "WaitsAtPermit"
HELD = "Held"
ONE_BY_ONE = "OneByOne"
ERROR = "Error"

PLACED = "Placed"
NEEDS_PREEMPTION = "NeedsPreemption"
DOES_NOT_FIT = "DoesNotFit"
UNTRIED = "Untried"


class _Answer(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Base of the parts of an answer."""


class GroupMember(_Answer, frozen=True):
    """A pod of a group.

    Attributes:
        pod: ``namespace/name``.
        state: ``Placed``, ``WaitsAtPermit``, ``Fits``, ``NeedsPreemption``, ``DoesNotFit``,
            ``Held`` by PreEnqueue, or ``Untried`` after an error of another member.
        node: Its node, or the one that the try of the group found for it.
        message: Why it is on no node.
    """

    pod: str
    state: str
    node: str = ""
    message: str = ""


class DomainVerdict(_Answer, frozen=True):
    """The try of a group in one topology domain.

    Attributes:
        value: The value of the node label.
        nodes: Number of nodes.
        fits: Number of the tried members that fit.
        outcome: ``Fits``, ``Unschedulable`` or ``Error``.
        message: Why the first member that does not fit there is rejected, or the error.
    """

    value: str
    nodes: int
    fits: int
    outcome: str
    message: str = ""


class GroupExplanation(_Answer, frozen=True):
    """What keeps a pod group from being scheduled, or what it would get.

    Attributes:
        group: ``namespace/name``.
        outcome: ``Scheduled``: no member is pending. ``Fits``: the pending members would be bound
            now. ``WaitsForPreemption``: after evictions. ``Unschedulable``, ``Error``: the result
            of the try. ``WaitsForMembers``, ``WaitsForGroup``, ``Held``: PreEnqueue holds the
            pending members. ``WaitsAtPermit``: they are assumed. ``OneByOne``: the feature gate
            is off.
        text: The outcome as a sentence.
        basis: What the answer is based on.
        num_members: Number of its pods that exist.
        num_scheduled: Number of its pods that are assumed or bound.
        num_fitting: Number of the tried members that fit, in the domain that was chosen, or in the
            one where most of them do.
        min_count: How many members a gang needs; None for a basic group.
        topology_key: The node label of which all members share a value.
        message: The message of the PodGroupScheduled condition that the scheduler would write.
        condition: The message of that condition in the cluster.
        members: Its pods: those on nodes, then the tried ones in order, then the held ones.
        domains: The topology domains that were tried.
        domain: The domain that is chosen, or that `misfit` is about.
        misfit: The first member that does not fit.
        decision: The decision about `misfit`, beside the members that were placed before it.
        victims: The pods that would be evicted.
        preemption: Why the group may not preempt, or to no avail.
        notes: What the answer cannot know, a sentence each.
    """

    group: str
    outcome: str
    text: str
    basis: str
    num_members: int = 0
    num_scheduled: int = 0
    num_fitting: int = 0
    min_count: int | None = None
    topology_key: str = ""
    message: str = ""
    condition: str = ""
    members: tuple[GroupMember, ...] = ()
    domains: tuple[DomainVerdict, ...] = ()
    domain: str = ""
    misfit: str = ""
    decision: SchedulingExplanation | None = None
    victims: tuple[str, ...] = ()
    preemption: str = ""
    notes: tuple[str, ...] = ()
