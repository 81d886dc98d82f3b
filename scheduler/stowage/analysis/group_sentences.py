"""The outcome of a pod group as one sentence."""

from __future__ import annotations

from collections.abc import Mapping

from stowage.analysis import group_explanation as words
from stowage.analysis.explanation import SchedulingExplanation
from stowage.analysis.group_explanation import GroupExplanation, GroupMember


def sentence(about: GroupExplanation) -> str:
    """What keeps the group from being scheduled, or what it would get.

    Examples:
        >>> sentence(GroupExplanation("d/g", words.WAITS_FOR_MEMBERS, "", "", 5, min_count=8))
        '5 of 8 members exist'
    """
    match about.outcome:
        case words.ONE_BY_ONE:
            return (
                "the feature gate GenericWorkload is false: members are scheduled one by one, "
                "like other pods"
            )
        case words.WAITS_FOR_GROUP:
            return f"the pod group does not exist; pods that name it: {about.num_members}"
        case words.WAITS_FOR_MEMBERS if about.min_count is not None:
            return f"{about.num_members} of {about.min_count} members exist"
        case words.WAITS_FOR_MEMBERS:
            return "it has no members"
        case words.SCHEDULED:
            return f"{about.num_scheduled} of {about.num_members} members are scheduled"
        case words.WAITS_AT_PERMIT:
            return f"{_fit(about, about.num_scheduled)}; they wait at Permit"
        case words.HELD:
            return _held(about)
        case words.ERROR:
            return f"error: {about.message}"
    return _tried(about)


def _tried(about: GroupExplanation) -> str:
    num_fitting = about.num_scheduled + about.num_fitting
    if about.outcome == words.FITS:
        return f"{_fit(about, num_fitting)}: the scheduler would bind them now{_chosen(about)}"
    if about.outcome == words.WAITS_FOR_PREEMPTION:
        evicted = "1 pod" if len(about.victims) == 1 else f"{len(about.victims)} pods"
        return f"{_fit(about, num_fitting)} without preemption; the group evicts {evicted}"
    if not about.domain and about.topology_key:
        return f"{about.message}: no domain of {about.topology_key}"
    where = f"in {about.topology_key}={about.domain}, " if about.domain else ""
    return f"{where}{_fit(about, num_fitting)}; {_why(about)}"


def _fit(about: GroupExplanation, number: int) -> str:
    is_other = about.min_count is not None and about.min_count != about.num_members
    needed = f" ({about.min_count} are needed)" if is_other else ""
    return f"{number} of {about.num_members} members fit{needed}"


def _chosen(about: GroupExplanation) -> str:
    return f" in {about.topology_key}={about.domain}" if about.domain else ""


def _why(about: GroupExplanation) -> str:
    misfits = [each for each in about.members if each.state == words.DOES_NOT_FIT]
    if not misfits:
        return _held(about)
    more = f" and {len(misfits) - 1} more do not" if len(misfits) > 1 else " does not"
    misfit = next((each for each in misfits if each.pod == about.misfit), misfits[0])
    return f"{misfit.pod}{more}: {_reasons(misfit, about.decision)}"


def _reasons(misfit: GroupMember, decision: SchedulingExplanation | None) -> str:
    if decision is None or not decision.reason_counts:
        return misfit.message
    nearest = [each.text for each in decision.near_misses[:1]]
    return "; nearest miss: it ".join([counts_text(decision.reason_counts), *nearest])


def counts_text(counts: Mapping[str, int]) -> str:
    """The numbers of nodes by reason, most frequent first.

    Examples:
        >>> counts_text({"Too many pods": 1, "Insufficient cpu": 3})
        '3 nodes Insufficient cpu, 1 node Too many pods'
        >>> counts_text({"node(s) had untolerated taint(s)": 2})
        '2 node(s) had untolerated taint(s)'
    """
    found = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return ", ".join(_count_text(number, reason) for reason, number in found)


def _count_text(number: int, reason: str) -> str:
    if reason.startswith("node(s)"):
        return f"{number} {reason}"
    return f"{number} {'node' if number == 1 else 'nodes'} {reason}"


def _held(about: GroupExplanation) -> str:
    held = [each for each in about.members if each.state == words.HELD]
    if not held:
        return about.message
    more = f" and {len(held) - 1} more are" if len(held) > 1 else " is"
    return f"{held[0].pod}{more} held: {held[0].message}"
