"""What must hold after every call, checked against the parts themselves."""

from __future__ import annotations

from stowage.engine.binding import BindingPhase
from stowage.engine.machine import Machine
from stowage.engine.preemption.evictions import preemption_problems
from stowage.state.cache import InvariantViolation


def check_invariants(machine: Machine) -> None:
    """Check that nothing is lost, bound twice or in two places.

    That no node is overcommitted by our own decisions follows from Filter and from the cache
    being equal to a rebuild; what others bind can overcommit a node, so it is no invariant.

    What is assumed about claims and volumes is assumed for pods being bound: before they are, the
    watches have shown it, and if they are not, it has been given back.

    Raises:
        InvariantViolation: With what is wrong, naming the pods.
    """
    machine.cache.validate()
    machine.queue.validate()
    _check_bindings(machine)
    in_flight = sorted(machine.queue.in_flight())
    accounted = sorted((*machine.waiting.plugins(), *machine.consultations.uids))
    if in_flight != accounted:
        raise InvariantViolation("pods in flight", accounted, in_flight)
    for problem in machine.consultations.problems():
        raise InvariantViolation("consultations", "consistent", problem)
    _check_assumed_storage(machine)
    stray = sorted(uid for uid in machine.stages.uids() if uid not in machine.bindings)
    if stray:
        raise InvariantViolation("pods waiting for claims", "being bound", stray)
    for problem in preemption_problems(machine):
        raise InvariantViolation("preemptions", "consistent", problem)
    _check_nominations(machine)
    both = sorted(machine.unconfirmed.keys() & machine.bindings.keys())
    if both:
        raise InvariantViolation("pods bound and yet being bound", [], both)


def _check_bindings(machine: Machine) -> None:
    for uid, cycle in machine.bindings.items():
        subject = f"pod {cycle.info.key} being bound"
        if machine.cache.get_pod(uid) is None and not cycle.was_deleted:
            raise InvariantViolation(subject, "in the cache", "absent")
        is_waiting = cycle.phase is BindingPhase.WAITING_ON_PERMIT
        if is_waiting is not (uid in machine.waiting):
            raise InvariantViolation(f"pod {cycle.info.key} {cycle.phase.value}", "waiting", "not")
        if not is_waiting and machine.queue.state_of(uid) is not None:
            raise InvariantViolation(subject, "nowhere else", "queued")


def _check_nominations(machine: Machine) -> None:
    for framework in machine.frameworks.values():
        for problem in framework.nomination_problems(
            machine.queue.nominator, machine.cache.snapshot()
        ):
            raise InvariantViolation("nominations", "as the queue has them", problem)


def _check_assumed_storage(machine: Machine) -> None:
    for what, uid in machine.cache.assumed_storage().items():
        if uid and uid not in machine.bindings:
            raise InvariantViolation(f"{what} assumed", "for a pod being bound", f"for pod {uid}")
