"""Trying the members of a pod group one after the other in the cluster as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from stowage.api.interruptible import Interruptible
from stowage.api.status import Status, error
from stowage.engine.binding.failure import emit_instructions, unreserve
from stowage.engine.binding.steps import run_permit, run_reserve, status_of_step
from stowage.engine.pod_groups.outcome import (
    UNSCHEDULABLE_TEXT,
    WAITING_TEXT,
    GroupOutcome,
    GroupResult,
    MemberResult,
)
from stowage.engine.preparation import has_to_prepare, preparing_steps
from stowage.engine.scheduling import (
    ExtendersNeeded,
    Failed,
    Scheduled,
    SchedulingResult,
    Unschedulable,
    VictimReviewNeeded,
)
from stowage.engine.scheduling_cycle import (
    attempt_result,
    choose_node,
    move_search_start,
    place_on,
    scheduling_request,
    take_turn,
)
from stowage.engine.state.attempt import Attempt
from stowage.engine.state.bindings import BindingCycle, BindingPhase
from stowage.engine.state.engine_state import EngineState
from stowage.framework import (
    CompanionClaims,
    CycleState,
    PreemptionBarred,
    PreparedCycle,
    is_plain,
)
from stowage.state.devices.devices import ClaimAllocation

_NO_EXTENDERS = error("extenders cannot take part in the attempt of a whole pod group")


class Try(msgspec.Struct, frozen=True):
    """How members are tried.

    Attributes:
        node_names: The only nodes that members may go to; None for all.
        barred: Why no member may preempt; empty if members may.
        is_what_if: Whether the cluster is not as it is, so that PostFilter, which may write to it,
            does not run.
    """

    node_names: frozenset[str] | None = None
    barred: str = ""
    is_what_if: bool = False


def try_members(
    state: EngineState, attempts: Sequence[Attempt], how: Try
) -> Interruptible[GroupOutcome]:
    """Assume and reserve the members where each fits after those before it.

    ``podGroupSchedulingDefaultAlgorithm`` of v1.36: the group is feasible as soon as Permit lets a
    member pass. The members that are on nodes stay there; see `take_back`.
    """
    outcome = GroupOutcome(GroupResult.UNSCHEDULABLE, UNSCHEDULABLE_TEXT, [], is_placed=True)
    is_waiting = False
    reserved: dict[str, ClaimAllocation] = {}
    before: MemberResult | None = None
    for attempt in attempts:
        yield
        if not _repeats(before, attempt) and has_to_prepare(attempt.info):
            yield from preparing_steps(state, attempt.info)
        known = _prepared(before, attempt)
        member = before = yield from _try_member(state, attempt, how, reserved, known)
        outcome.members.append(member)
        if isinstance(member.outcome, Failed) or _is_error(member.rejection):
            outcome.result = GroupResult.ERROR
            text = _failure_text(member)
            outcome.message = f"failed to schedule other pod from a pod group: {text}"
            break
        if member.cycle is None:
            continue
        reserved.update((each.claim_uid, each) for each in member.cycle.allocations)
        is_waiting |= member.needs_preemption
        if member.permit.is_success:
            outcome.result = (
                GroupResult.WAITING_ON_PREEMPTION if is_waiting else GroupResult.SCHEDULED
            )
            outcome.message = WAITING_TEXT if is_waiting else ""
    return outcome


def take_back(state: EngineState, outcome: GroupOutcome) -> Interruptible[None]:
    """Unreserve and forget the members of a try in reverse order; nothing of it is left."""
    for member in reversed(outcome.members if outcome.is_placed else ()):
        if member.cycle is not None:
            _take_back(state, member.cycle)
            yield
    outcome.is_placed = False


def free_members(outcome: GroupOutcome) -> Interruptible[None]:
    """Drop what a try found out about its members; to free thousands at once takes long."""
    while outcome.members:
        del outcome.members[-1]
        yield


def place_again(state: EngineState, outcome: GroupOutcome) -> Interruptible[None]:
    """Assume and reserve the members of a try as before, after it was taken back."""
    for member in outcome.members:
        cycle, member.cycle = member.cycle, None
        if cycle is not None:
            _assume(state, member, cycle.node_name, cycle.cycle_state)
            yield
    outcome.is_placed = True


def _repeats(before: MemberResult | None, attempt: Attempt) -> bool:
    """Whether the class of a member is that of the one before."""
    return before is not None and before.attempt.info.pod_class is attempt.info.pod_class


def _prepared(before: MemberResult | None, attempt: Attempt) -> PreparedCycle | None:
    """What was left for the member before, if it was placed and its class is that of this one."""
    if before is None or before.cycle is None or not _repeats(before, attempt):
        return None
    return before.prepared


def _try_member(
    state: EngineState,
    attempt: Attempt,
    how: Try,
    reserved: Mapping[str, ClaimAllocation],
    before: PreparedCycle | None,
) -> Interruptible[MemberResult]:
    """Try a member after others, which have reserved devices for claims that it may share."""
    started = state.timer()
    cycle_state = state.new_cycle_state(attempt.info.uid)
    if reserved and attempt.info.spec.resource_claims:
        cycle_state.write(CompanionClaims(dict(reserved)))
    outcome = yield from _choose(state, attempt, cycle_state, how, before)
    result = attempt_result(state, attempt.queued, outcome, state.timer() - started)
    member = MemberResult(attempt, outcome, result)
    move_search_start(state, outcome)
    if isinstance(outcome, Scheduled):
        if outcome.serves_class and cycle_state.timings is None:
            member.prepared = cycle_state.prepared(was_scored=outcome.scores is not None)
        take_turn(state, attempt.info, outcome)
        _assume(state, member, outcome.node_name, cycle_state)
    elif isinstance(outcome, Unschedulable):
        emit_instructions(state, cycle_state)
        if outcome.nominated_node_name:
            _assume(state, member, outcome.nominated_node_name, cycle_state)
    return member


def _choose(
    state: EngineState,
    attempt: Attempt,
    cycle_state: CycleState,
    how: Try,
    before: PreparedCycle | None,
) -> Interruptible[SchedulingResult]:
    request = scheduling_request(state, attempt, cycle_state)
    if before is not None and cycle_state.timings is None and is_plain(request.pod):
        request = replace(request, before=before)
    if how.node_names is not None:
        request = replace(request, node_names=how.node_names)
    if how.is_what_if:
        request = replace(request, runs_post_filter=False)
    is_usual = how.node_names is None and not how.barred
    if how.barred:
        cycle_state.write(PreemptionBarred(how.barred))
    outcome = yield from choose_node(state, request, state.refusals if is_usual else None)
    if isinstance(outcome, ExtendersNeeded | VictimReviewNeeded):
        return Failed(_NO_EXTENDERS)
    return outcome


def _assume(
    state: EngineState, member: MemberResult, node_name: str, cycle_state: CycleState
) -> None:
    """Assume, reserve and ask Permit; a member that is rejected is taken back."""
    cycle = place_on(state, member.attempt, node_name, cycle_state)
    member.rejection = status_of_step(state, cycle, run_reserve)
    if not member.rejection.is_success:
        # If a plugin failed, all have unreserved already.
        _take_back(state, cycle, has_reserved=cycle.phase is not BindingPhase.RESERVING)
        return
    member.rejection = status_of_step(state, cycle, run_permit)
    # What a Permit plugin asks for the sake of others counts only when the group is bound.
    cycle_state.take_pods_to_activate()
    cycle_state.group_to_allow = None
    if not member.rejection.is_success:
        _take_back(state, cycle)
        return
    member.cycle = cycle
    member.permit = cycle.permit_status
    member.waits_for = frozenset(cycle.permit_timeouts or ())


def _take_back(state: EngineState, cycle: BindingCycle, *, has_reserved: bool = True) -> None:
    state.bindings.remove(cycle.info.uid)
    if has_reserved:
        unreserve(state, cycle)
    state.cache.forget_pod(cycle.info.uid)


def _is_error(status: Status) -> bool:
    return not status.is_success and not status.is_rejected


def _failure_text(member: MemberResult) -> str:
    if isinstance(member.outcome, Failed):
        return member.outcome.status.message
    return member.rejection.message
