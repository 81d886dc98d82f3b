"""The steps of a binding cycle, one per extension point."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from itertools import takewhile
from typing import Any, TypeAlias

from msgspec.structs import replace

from stowage.api.instructions import (
    BindByExtender,
    BindClaims,
    BindPod,
    BindVolumes,
    Instruction,
    RunPreBind,
)
from stowage.api.status import SUCCESS, Code, Status, error
from stowage.engine.binding.failure import fail_binding_cycle, tell_plugins
from stowage.engine.state.binding_durations import BIND, PRE_BIND
from stowage.engine.state.bindings import BindingCycle, BindingPhase
from stowage.engine.state.engine_state import EngineState
from stowage.framework import PluginFailed
from stowage.framework.runtime.binding_run import StagedPreBind, reserve_failed

_SUCCESS = Code.SUCCESS

#: Runs plugins and emits instructions; anything but Success ends the binding cycle.
Step: TypeAlias = Callable[[EngineState, BindingCycle], Status]

_PreBind: TypeAlias = RunPreBind | BindVolumes | BindClaims


def run_step(state: EngineState, cycle: BindingCycle, step: Step, now: float) -> bool:
    """Run a step; if it fails the binding cycle ends, and the answer is False."""
    status = status_of_step(state, cycle, step)
    if status.code is _SUCCESS:
        return True
    fail_binding_cycle(state, cycle, status, now)
    return False


def status_of_step(state: EngineState, cycle: BindingCycle, step: Step) -> Status:
    """Run a step; an exception is an error status.

    Raises:
        MemoryError: Outside of plugins.
    """
    try:
        return step(state, cycle)
    except PluginFailed as failed:
        return failed.status
    except MemoryError:
        raise  # no pod is at fault
    except Exception as fault:
        text = f"binding cycle: {fault!r}"
        state.outbox.report(f"Pod {cycle.info.key}", text)
        return error(text)


def run_reserve(state: EngineState, cycle: BindingCycle) -> Status:
    """Run the Reserve plugins and apply their plans. If one fails, all of them have unreserved."""
    outcome = cycle.framework.run_reserve(cycle.cycle_state, cycle.info, cycle.node_name)
    if outcome.status.code is not _SUCCESS:
        return outcome.status
    cycle.phase = BindingPhase.PERMITTING
    cycle.reserve_plans = outcome.plans
    for plugin, plan in outcome.plans.items():
        try:
            state.cache.assume_storage(plan.volumes, plan.claims, cycle.info.uid)
        except ValueError as problem:
            raise reserve_failed(plugin, problem) from problem
        if plan.allocations:
            state.cache.begin_allocations(plan.allocations, cycle.info.uid)
        if plan.annotations:
            state.cache.annotate_assumed(cycle.info.uid, plan.annotations)
    return SUCCESS


def run_permit(state: EngineState, cycle: BindingCycle) -> Status:
    """Run the Permit plugins; their timeouts are kept in the cycle if they make the pod wait."""
    del state
    permit = cycle.framework.run_permit(cycle.cycle_state, cycle.info, cycle.node_name)
    code = permit.status.code
    if code is not _SUCCESS and code is not Code.WAIT:
        return permit.status
    cycle.permit_status, cycle.permit_timeouts = permit.status, permit.timeouts
    return SUCCESS


def run_pre_bind_pre_flight(state: EngineState, cycle: BindingCycle) -> Status:
    """Ask the PreBind plugins whether they have work to do."""
    del state
    cycle.phase = BindingPhase.PRE_FLIGHT
    plan = cycle.framework.plan_pre_bind(cycle.cycle_state, cycle.info, cycle.node_name)
    cycle.pre_binds = plan.plugins
    return plan.status


def run_next_pre_bind(state: EngineState, cycle: BindingCycle) -> Status:
    """Run the next PreBind plugins, or Bind if none is left.

    PreBind coroutines run in the shell, several after one another. The PreBind of volumes, and that
    of claims, consists of writes by the shell and of a wait for objects.
    """
    cycle.phase = BindingPhase.PRE_BINDING
    cycle.staged_pre_bind = None
    if not cycle.pre_binds:
        if cycle.durations is not None:
            cycle.durations.end_pre_bind(_SUCCESS)
        return run_bind(state, cycle)
    cycle.pre_bind_plugin = cycle.pre_binds[0]
    staged_pre_bind = _staged_pre_bind(cycle, cycle.pre_bind_plugin)
    if staged_pre_bind is not None:
        if cycle.durations is not None:
            cycle.durations.begin_plugin(cycle.pre_bind_plugin, PRE_BIND)
        cycle.staged_pre_bind = staged_pre_bind
        cycle.pre_binds = cycle.pre_binds[1:]
        cycle.phase = BindingPhase.WRITING
        state.outbox.emit(_numbered(state, cycle, staged_pre_bind.writes()))
        return SUCCESS
    run = tuple(takewhile(lambda name: _staged_pre_bind(cycle, name) is None, cycle.pre_binds))
    cycle.pre_binds = cycle.pre_binds[len(run) :]
    scheduler_name = cycle.framework.scheduler_name
    work = RunPreBind(cycle.reference, cycle.node_name, scheduler_name, run)
    state.outbox.emit(_numbered(state, cycle, work))
    return SUCCESS


def run_pre_bind(state: EngineState, uid: str, plugin: str) -> Coroutine[Any, Any, Status] | None:
    """The coroutine of one PreBind plugin, for the shell to await.

    Returns:
        None if the pod is not being pre-bound any more.
    """
    cycle = state.bindings.get(uid)
    if cycle is None or cycle.phase is not BindingPhase.PRE_BINDING:
        return None
    return cycle.framework.run_pre_bind(cycle.cycle_state, cycle.info, cycle.node_name, (plugin,))


def run_bind(state: EngineState, cycle: BindingCycle) -> Status:
    """Emit the Binding of an extender, or of the first Bind plugin that does not skip."""
    instruction: Instruction
    if cycle.extender is None:
        instruction = _run_bind_plugins(cycle)
    else:
        fallback = _run_bind_plugins(cycle) if cycle.extender.is_ignorable else None
        instruction = BindByExtender(
            cycle.reference, cycle.node_name, cycle.extender.index, fallback
        )
    if cycle.durations is not None and cycle.extender is None:
        cycle.durations.begin_plugin(cycle.bind_plugin, BIND)
    cycle.phase = BindingPhase.BINDING
    state.outbox.emit(instruction)
    return SUCCESS


def run_post_bind(state: EngineState, cycle: BindingCycle) -> None:
    """Run the PostBind plugins; one that raises is reported."""
    run = cycle.framework.run_post_bind
    tell_plugins(state, cycle, lambda: run(cycle.cycle_state, cycle.info, cycle.node_name))


def _numbered(state: EngineState, cycle: BindingCycle, instruction: _PreBind) -> _PreBind:
    """The instruction with a number, by which its outcome is told from that of an earlier cycle."""
    cycle.pre_bind_number = state.bindings.next_number()
    if isinstance(instruction, BindClaims):
        cycle.claims_number = cycle.pre_bind_number
    return replace(instruction, number=cycle.pre_bind_number)


def _staged_pre_bind(cycle: BindingCycle, plugin: str) -> StagedPreBind | None:
    return cycle.framework.staged_pre_bind(cycle.cycle_state, cycle.info, cycle.node_name, plugin)


def _run_bind_plugins(cycle: BindingCycle) -> BindPod:
    cycle.bind_plugin, bind = cycle.framework.run_bind(
        cycle.cycle_state, cycle.info, cycle.node_name
    )
    for plan in cycle.reserve_plans.values():
        if plan.annotations:
            bind = replace(bind, annotations={**bind.annotations, **plan.annotations})
    return bind
