"""Carrying out the result of a pod group's attempt: bind the members, or put them back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set

from msgspec.structs import replace

from stowage.api.instructions import AttemptResult
from stowage.api.interruptible import Interruptible
from stowage.engine.binding.failure import activate_group
from stowage.engine.binding.state_machine import binding_cycle
from stowage.engine.binding.steps import run_permit, run_step
from stowage.engine.pod_groups.outcome import (
    UNSCHEDULABLE_TEXT,
    GroupOutcome,
    GroupResult,
    MemberResult,
)
from stowage.engine.preemption.evictions import start_preemption
from stowage.engine.scheduling import Failed, Scheduled, Unschedulable
from stowage.engine.scheduling_failure import Failure, handle_scheduling_failure
from stowage.engine.state.attempt import Attempt
from stowage.engine.state.bindings import BindingCycle
from stowage.engine.state.engine_state import EngineState
from stowage.framework import Diagnosis, Preemption, fit_error_message


def bind_members(
    state: EngineState, outcome: GroupOutcome, now: float, *, retries_rest: bool
) -> Interruptible[None]:
    """Start the binding cycles of the members that fit, and put the others back.

    All of them are assumed, so Permit lets the first one pass. A Permit plugin may still reject a
    member. Then all plugins are asked again about the others: these wait for it, unless there are
    enough of them, and time out.

    Args:
        state: The engine's state.
        outcome: The try; its members are on their nodes.
        now: The time.
        retries_rest: Whether the others are tried again at once: alone they may preempt, which they
            could not beside members that fit.
    """
    asked: list[BindingCycle] = []
    permitted: list[BindingCycle] = []
    for member in outcome.members:
        yield
        if member.cycle is not None:
            asked.append(member.cycle)
            _emit_scheduled(state, member, member.cycle)
            if run_step(state, member.cycle, run_permit, now):
                permitted.append(member.cycle)
            continue
        _fail(state, member, own_failure(member), now)
        if retries_rest:
            state.queue.activate((member.attempt.queued.uid,), now)
    while len(permitted) < len(asked):
        asked, permitted = permitted, []
        for cycle in asked:
            yield
            if _is_permitted_again(state, cycle, now):
                permitted.append(cycle)
    for cycle in permitted:
        yield
        yield from binding_cycle(state, cycle, now)


def put_back(
    state: EngineState, outcome: GroupOutcome, attempts: Sequence[Attempt], now: float
) -> Interruptible[None]:
    """Put all members back into the queue, after the try was taken back.

    If the group fits after evictions, these begin now.
    """
    yield from _start_preemptions(state, outcome, now)
    rejected_by = outcome.rejecting_plugins
    for member in outcome.members:
        yield
        failure = _failure_in_group(member, outcome, rejected_by)
        _fail(state, member, failure, now)
    for attempt in attempts[len(outcome.members) :]:
        yield
        is_error = outcome.result is GroupResult.ERROR
        untried = Failure(outcome.message, is_error=is_error, rejected_by=rejected_by)
        result = AttemptResult(
            attempt.info.reference,
            "error" if is_error else "unschedulable",
            attempt.info.scheduler_name,
            attempt.queued.attempts,
            configuration=state.configuration,
        )
        _emit(state, result, untried)
        handle_scheduling_failure(state, attempt.queued, attempt.info, untried, now)
    _await_victims(state, outcome, attempts[0].info.group_key, now)


def own_failure(member: MemberResult) -> Failure:
    """Why a member is on no node."""
    if isinstance(member.outcome, Failed):
        return Failure(member.outcome.status.message, is_error=True)
    if isinstance(member.outcome, Scheduled) or member.outcome.nominated_node_name:
        rejection = member.rejection
        if rejection.is_success and isinstance(member.outcome, Unschedulable):
            return _unschedulable(member.outcome)
        if not rejection.is_rejected:
            return Failure(rejection.message, is_error=True)
        by = frozenset({rejection.plugin}) if rejection.plugin else frozenset[str]()
        text = fit_error_message(Diagnosis(1, Counter(rejection.reasons)))
        return Failure(text, rejected_by=by)
    return _unschedulable(member.outcome)


def _unschedulable(outcome: Unschedulable) -> Failure:
    return Failure(
        outcome.message,
        rejected_by=outcome.requeueing_plugins,
        pending=outcome.pending_plugins,
        nominated_node_name=outcome.nominated_node_name,
    )


def _failure_in_group(
    member: MemberResult, outcome: GroupOutcome, rejected_by: frozenset[str]
) -> Failure:
    """The failure of a member of a group that is not bound now."""
    if outcome.result is GroupResult.ERROR:
        failure = own_failure(member) if member.cycle is None else None
        if failure is not None and failure.is_error:
            return failure
        return Failure(outcome.message, is_error=True)
    if outcome.result is GroupResult.WAITING_ON_PREEMPTION and member.fits:
        node_name = _nomination(member, outcome)
        return Failure(outcome.message, rejected_by=rejected_by, nominated_node_name=node_name)
    if outcome.result is GroupResult.UNSCHEDULABLE and member.cycle is not None:
        text = f"{UNSCHEDULABLE_TEXT}, {member.permit.message}"
        return Failure(text, rejected_by=rejected_by)
    # What helps one member may help the others: their events move it too.
    failure = own_failure(member)
    if outcome.nominations:
        failure = replace(failure, nominated_node_name=_nomination(member, outcome))
    return replace(failure, rejected_by=failure.rejected_by | rejected_by)


def _nomination(member: MemberResult, outcome: GroupOutcome) -> str:
    """The node where a member waits for the end of victims; empty if it is to go nowhere.

    kube-scheduler v1.36 nominates none of the members that needed the room when a group evicts as a
    whole. Pods of lower priority, such as the victims' replacements, may then take it.
    """
    if outcome.nominations:
        return outcome.nominations.get(member.attempt.info.uid, "")
    return "" if member.cycle is None else member.cycle.node_name


def _emit_scheduled(state: EngineState, member: MemberResult, cycle: BindingCycle) -> None:
    result = replace(member.attempt_result, decision=state.next_decision())
    state.outbox.emit(result)
    cycle.decision = result.decision


def _is_permitted_again(state: EngineState, cycle: BindingCycle, now: float) -> bool:
    cycle.cycle_state.take_pods_to_activate()
    cycle.cycle_state.group_to_allow = None
    return run_step(state, cycle, run_permit, now)


def _start_preemptions(
    state: EngineState, outcome: GroupOutcome, now: float
) -> Interruptible[None]:
    """Evict the victims of each member once, if the group fits without them.

    kube-scheduler v1.36 evicts them before it knows that.
    """
    is_waiting = outcome.result is GroupResult.WAITING_ON_PREEMPTION
    for member in outcome.members:
        preemption = _preemption(member)
        if preemption is None:
            continue
        if preemption.chosen is None:
            start_preemption(state, member.attempt.info, preemption, now)
            yield
        elif is_waiting and member.cycle is not None:
            own = _without(preemption, outcome.victims)
            start_preemption(state, member.attempt.info, own, now)
            outcome.victims.update(victim.uid for victim in preemption.chosen.victims)
            yield


def _await_victims(state: EngineState, outcome: GroupOutcome, key: str, now: float) -> None:
    """Try the group again when its victims are gone; those without a Binding are gone already."""
    if not outcome.victims:
        return
    left = [uid for uid in sorted(outcome.victims) if state.cache.get_pod(uid) is not None]
    state.group_evictions.await_end(key, left)
    if not left:
        activate_group(state, key, now)


def _preemption(member: MemberResult) -> Preemption | None:
    return member.outcome.preemption if isinstance(member.outcome, Unschedulable) else None


def _without(preemption: Preemption, evicted: Set[str]) -> Preemption:
    """The preemption without victims of companions; if none is left, the pod waits for one."""
    assert preemption.chosen is not None  # noqa: S101 - the caller asked
    victims = preemption.chosen.victims
    left = tuple(victim for victim in victims if victim.uid not in evicted)
    if left:
        return replace(preemption, chosen=replace(preemption.chosen, victims=left))
    return Preemption(awaited=victims[-1].uid)


def _fail(state: EngineState, member: MemberResult, failure: Failure, now: float) -> None:
    attempt = member.attempt
    if isinstance(member.outcome, Failed):
        framework = state.frameworks[attempt.info.scheduler_name]
        state.errors.count(member.outcome.status, framework, "predicate")
    _emit(state, member.attempt_result, failure)
    handle_scheduling_failure(state, attempt.queued, attempt.info, failure, now)


def _emit(state: EngineState, result: AttemptResult, failure: Failure) -> None:
    """Emit the result of a member's attempt as a failure."""
    state.outbox.emit(
        replace(
            result,
            result="error" if failure.is_error else "unschedulable",
            node_name="",
            message=failure.message,
            nominated_node_name=failure.nominated_node_name or "",
            best=None,
            decision=state.next_decision(),
        )
    )
