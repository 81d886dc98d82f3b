"""Describes a pod group: what the try of its pending members finds out, as an answer."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from stowage.analysis import group_explanation as words
from stowage.analysis.explanation import AS_IT_IS_NOW, SchedulingExplanation
from stowage.analysis.group_explanation import DomainVerdict, GroupExplanation, GroupMember
from stowage.analysis.group_sentences import counts_text, sentence
from stowage.analysis.group_trial import (
    DomainTry,
    GroupTrial,
    decision_in_try,
    try_pending_members,
)
from stowage.engine.pod_groups.commitment import own_failure
from stowage.engine.pod_groups.outcome import GroupOutcome, GroupResult, MemberResult
from stowage.engine.pod_groups.topology import topology_key
from stowage.engine.scheduling import Unschedulable
from stowage.engine.state.engine_state import EngineState
from stowage.plugins.gang_scheduling import GangScheduling
from stowage.state.pods.pod_groups import KnownGroup

_CONDITION = "PodGroupScheduled"
_BY_RESULT = {
    GroupResult.SCHEDULED: words.FITS,
    GroupResult.WAITING_ON_PREEMPTION: words.WAITS_FOR_PREEMPTION,
    GroupResult.UNSCHEDULABLE: words.UNSCHEDULABLE,
    GroupResult.ERROR: words.ERROR,
}


class DescribedGroup(msgspec.Struct, frozen=True):
    """A group's explanation, and the try that it is from; None if members are not tried together.

    Attributes:
        explanation: The explanation.
        trial: The try.
    """

    explanation: GroupExplanation
    trial: GroupTrial | None = None

    def decision_about(self, state: EngineState, uid: str) -> SchedulingExplanation | None:
        """The decision about a pending member in the try; None if it was not tried."""
        shown = None if self.trial is None else self.trial.shown
        if self.trial is None or shown is None:
            return None
        if all(each.attempt.info.uid != uid for each in shown.outcome.members):
            return None
        return decision_in_try(state, self.trial, shown, uid)


def is_tried_as_group(state: EngineState) -> bool:
    """Whether members of groups are tried together: the feature gate is not set to false."""
    return state.gates.set_to("GenericWorkload") is not False


def describe_group(state: EngineState, key: str) -> DescribedGroup:
    """Describe the group ``namespace/name``; the engine stays as it is."""
    known = state.cache.pod_groups.group(key)
    members = state.cache.pod_groups.members(key)
    about = GroupExplanation(
        key,
        words.ONE_BY_ONE,
        "",
        AS_IT_IS_NOW,
        members.num_all,
        members.num_scheduled,
        min_count=None if known is None else known.group.min_count,
        topology_key=topology_key(state, known),
        condition=_condition(known),
        members=tuple(_members_on_nodes(state, key)),
    )
    if not is_tried_as_group(state):
        return DescribedGroup(replace(about, text=sentence(about)))
    trial = try_pending_members(state, key)
    tried = replace(
        about,
        outcome=_outcome(state, key, trial),
        members=(*about.members, *_pending_members(trial)),
        notes=tuple(_notes(state, trial)),
    )
    if trial.outcome is not None:
        tried = _with_outcome(state, tried, trial, trial.outcome)
    return DescribedGroup(replace(tried, text=sentence(tried)), trial)


def _condition(known: KnownGroup | None) -> str:
    """The message of the condition that the cluster has."""
    conditions = () if known is None else known.group.status.conditions
    return next((each.message for each in conditions if each.type == _CONDITION), "")


def _members_on_nodes(state: EngineState, key: str) -> Iterator[GroupMember]:
    members = state.cache.pod_groups.members(key)
    pods = [pod for uid in members.scheduled() if (pod := state.cache.get_pod(uid)) is not None]
    for pod in sorted(pods, key=lambda each: each.key):
        is_assumed = pod.uid in members.assumed
        yield GroupMember(
            pod.key, words.WAITS_AT_PERMIT if is_assumed else words.PLACED, pod.node_name
        )


def _outcome(state: EngineState, key: str, trial: GroupTrial) -> str:
    if trial.victims:
        return words.WAITS_FOR_PREEMPTION
    if trial.outcome is not None:
        return _BY_RESULT[trial.outcome.result]
    groups = state.cache.pod_groups
    known, members = groups.group(key), groups.members(key)
    by_plugin = {gate.plugin for _, gate in trial.held}
    if GangScheduling.name in by_plugin:
        return words.WAITS_FOR_GROUP if known is None else words.WAITS_FOR_MEMBERS
    if by_plugin:
        return words.HELD
    if members.assumed:
        return words.WAITS_AT_PERMIT
    min_count = 0 if known is None else known.group.min_count or 0
    is_complete = members.num_all and members.num_all >= min_count
    return words.SCHEDULED if is_complete else words.WAITS_FOR_MEMBERS


def _with_outcome(
    state: EngineState, about: GroupExplanation, trial: GroupTrial, outcome: GroupOutcome
) -> GroupExplanation:
    """The explanation with what the try found out."""
    shown = trial.shown
    misfit = None if shown is None else _misfit(shown.outcome)
    decision = None
    if shown is not None and misfit is not None and isinstance(misfit.outcome, Unschedulable):
        decision = decision_in_try(state, trial, shown, misfit.attempt.info.uid)
    refusal = f", {trial.refusal}" if trial.refusal else ""
    return replace(
        about,
        num_fitting=0 if shown is None else shown.outcome.num_fitting,
        message=outcome.message + refusal,
        domains=tuple(map(_domain, trial.domains)),
        domain="" if shown is None else shown.value,
        misfit="" if misfit is None else misfit.attempt.info.key,
        decision=decision,
        victims=tuple(sorted(_victims(trial, outcome))),
        preemption=trial.refusal,
    )


def _misfit(outcome: GroupOutcome) -> MemberResult | None:
    return next((each for each in outcome.members if not each.fits), None)


def _domain(tried: DomainTry) -> DomainVerdict:
    misfit = _misfit(tried.outcome)
    return DomainVerdict(
        tried.value,
        len(tried.how.node_names or ()),
        tried.outcome.num_fitting,
        _BY_RESULT[tried.outcome.result],
        "" if misfit is None else f"{misfit.attempt.info.key}: {_reasons(misfit)}",
    )


def _reasons(misfit: MemberResult) -> str:
    outcome = misfit.outcome
    counts = outcome.diagnosis.reason_counts if isinstance(outcome, Unschedulable) else {}
    return counts_text(counts) or own_failure(misfit).message


def _victims(trial: GroupTrial, outcome: GroupOutcome) -> set[str]:
    """The pods that the group, or its members one by one, would evict."""
    found = {pod.key for pod in trial.victims}
    if outcome.result is not GroupResult.WAITING_ON_PREEMPTION:
        return found
    for member in outcome.members:
        preemption = (
            member.outcome.preemption if isinstance(member.outcome, Unschedulable) else None
        )
        if member.cycle is not None and preemption is not None and preemption.chosen is not None:
            found |= {pod.key for pod in preemption.chosen.victims}
    return found


def _pending_members(trial: GroupTrial) -> Iterator[GroupMember]:
    tried = () if trial.shown is None else trial.shown.outcome.members
    for member in tried:
        yield _tried_member(member)
    for attempt in trial.attempts[len(tried) :]:
        yield GroupMember(attempt.info.key, words.UNTRIED)
    for info, gate in trial.held:
        yield GroupMember(info.key, words.HELD, message=gate.message)


def _tried_member(member: MemberResult) -> GroupMember:
    key = member.attempt.info.key
    if member.cycle is None:
        return GroupMember(key, words.DOES_NOT_FIT, message=own_failure(member).message)
    state = words.FITS if member.fits else words.NEEDS_PREEMPTION
    return GroupMember(key, state, member.cycle.node_name)


def _notes(state: EngineState, trial: GroupTrial) -> Iterator[str]:
    for attempt in trial.attempts[:1]:
        profile = state.frameworks[attempt.info.scheduler_name].profile
        if GangScheduling.name not in profile.instances:
            yield "the profile has no plugin GangScheduling: members are bound as they fit"
    for attempt in trial.attempts:
        node = attempt.info.nominated_node_name
        if node:
            pod = attempt.info.key
            yield f"{pod} is nominated to {node}: it waits there at Permit, or for an eviction"
