"""The invariants of the engine's state, checked against its parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from stowage.engine.preemption.evictions import preemption_inconsistencies
from stowage.engine.state.bindings import BindingPhase, LastSeen
from stowage.engine.state.engine_state import EngineState
from stowage.queue.scheduling_queue import QueueInconsistentError
from stowage.state.cache import InvariantViolation


def invariant_steps(state: EngineState) -> Iterator[None]:
    """Check that no pod is lost, bound twice or in two places, one step between two values.

    The state may change between two steps.

    That the engine overcommits no node follows from Filter and from the cache being equal to a
    rebuild. Other clients may overcommit a node by their bindings, so it is no invariant.

    Claims and volumes are assumed for pods that are being bound. When a pod is bound, the watches
    have shown its claims; when it is not, the assumption has been reverted.

    Raises:
        InvariantViolation: Names what is wrong, and the pods.
    """
    yield from state.cache.validation_steps()
    yield from _queue_steps(state)
    for check in _CHECKS:
        check(state)
        yield


def _queue_steps(state: EngineState) -> Iterator[None]:
    try:
        yield from state.queue.validation_steps()
    except QueueInconsistentError as error:
        raise InvariantViolation("scheduling queue", "consistent", str(error)) from error


def _check_parts(state: EngineState) -> None:
    for part, problems in (
        ("bindings", state.bindings.inconsistencies()),
        ("consultations", state.consultations.inconsistencies()),
        ("preemptions", preemption_inconsistencies(state)),
    ):
        for problem in problems:
            raise InvariantViolation(part, "consistent", problem)


def _check_bindings(state: EngineState) -> None:
    """A pod that is being bound is in the cache, and in the queue only while it is in flight."""
    for cycle in state.bindings:
        uid, subject = cycle.info.uid, f"pod {cycle.info.key} being bound"
        if state.cache.get_pod(uid) is None and cycle.last_seen is not LastSeen.DELETED:
            raise InvariantViolation(subject, "in the cache", "absent")
        is_waiting = cycle.phase is BindingPhase.WAITING_ON_PERMIT
        if not is_waiting and state.queue.state_of(uid) is not None:
            raise InvariantViolation(subject, "nowhere else", "queued")


def _check_in_flight(state: EngineState) -> None:
    """The pods in flight are those that wait for Permit plugins or for extenders."""
    in_flight = sorted(state.queue.in_flight())
    waiting = sorted((*state.bindings.permit_waits.plugins(), *state.consultations.uids))
    if in_flight != waiting:
        raise InvariantViolation("pods in flight", waiting, in_flight)


def _check_nominations(state: EngineState) -> None:
    nominator, snapshot = state.queue.nominator, state.cache.snapshot()
    for framework in state.frameworks.values():
        for problem in framework.nomination_problems(nominator, snapshot):
            raise InvariantViolation("nominations", "equal to the queue's", problem)


def _check_devices_in_flight(state: EngineState) -> None:
    """Devices are in flight for pods being bound, claims being written, and created claims."""
    cycles = (*state.bindings, *state.bindings.abandoned_writes.values())
    created, devices = state.bindings.created_claims, state.cache.snapshot().devices
    expected = {uid for cycle in cycles for uid in cycle.allocated_claims} | created.uids
    found = devices.in_flight.keys()
    if not created.uids <= found <= expected:
        raise InvariantViolation("claims in flight", sorted(expected), sorted(found))
    for key, each in created.by_key.items():
        if devices.shows(each.claim):
            raise InvariantViolation(f"claim {key} created", "not shown yet", "shown")


def _check_assumed_storage(state: EngineState) -> None:
    for assumed, uid in state.cache.assumed_storage().items():
        if uid and uid not in state.bindings:
            raise InvariantViolation(
                f"{assumed} assumed", "for a pod being bound", f"for pod {uid}"
            )


_CHECKS: tuple[Callable[[EngineState], None], ...] = (
    _check_parts,
    _check_bindings,
    _check_in_flight,
    _check_assumed_storage,
    _check_devices_in_flight,
    _check_nominations,
)
