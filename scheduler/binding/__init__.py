"""Commitment: a pod's way from assumed to bound, or back.

    assumed -> Reserve -> Permit -+-> (waiting on permit) -+-> PreBind -> Bind -> bound
                  |          |    |          |             |      |        |
                  +----------+----+----------+-------------+------+--------+--> given back

Each step is a call that returns what comes next: a list of instructions for the shell, or the
status that ended it. Nothing here waits: what takes time is an instruction, and its outcome is
an event. The engine owns the cycles and is the only caller; it also un-assumes and requeues the
pod of a cycle that failed, because cache and queue are not this room's.

An asyncio task a pod was rejected: a state that lives in a stack frame can be neither inspected
nor replayed.
"""

from scheduler.binding.binding_cycle import BindingCycle, BindingPhase, Proceed, begin_binding
from scheduler.binding.waiting_pods import PERMIT_TIMEOUT_CAP_S, WaitingPods

__all__ = [
    "PERMIT_TIMEOUT_CAP_S",
    "BindingCycle",
    "BindingPhase",
    "Proceed",
    "WaitingPods",
    "begin_binding",
]
