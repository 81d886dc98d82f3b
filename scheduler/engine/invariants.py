"""What must hold after every call, checked against the parts themselves."""

from __future__ import annotations

from scheduler.engine.machine import Machine
from scheduler.engine.preemptions import preemption_problems
from scheduler.state.cache import InvariantViolation


def check_invariants(machine: Machine) -> None:
    """Check that nothing is lost, bound twice or in two places.

    That no node is overcommitted by our own decisions follows from Filter and from the cache
    being equal to a rebuild; what others bind can overcommit a node, so it is no invariant.

    Raises:
        InvariantViolation: With what is wrong, naming the pods.
    """
    machine.cache.validate()
    machine.queue.validate()
    for uid, cycle in machine.bindings.items():
        if machine.cache.get_pod(uid) is None and not cycle.was_deleted:
            raise InvariantViolation(f"pod {cycle.info.key} being bound", "in the cache", "absent")
    in_flight = sorted(machine.queue.in_flight())
    accounted = sorted((*machine.bindings, *machine.consultations.uids))
    if in_flight != accounted:
        raise InvariantViolation("pods in flight", accounted, in_flight)
    for problem in machine.consultations.problems():
        raise InvariantViolation("consultations", "consistent", problem)
    for problem in preemption_problems(machine):
        raise InvariantViolation("preemptions", "consistent", problem)
    both = sorted(machine.unconfirmed.keys() & machine.bindings.keys())
    if both:
        raise InvariantViolation("pods bound and yet being bound", [], both)
