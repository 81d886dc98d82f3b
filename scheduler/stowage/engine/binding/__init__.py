"""Commitment: a pod's way from assumed to bound, or back.

    |---- scheduling cycle ----|--------------------- binding cycle ---------------------|

    assumed -> Reserve -> Permit -> pre-flight -+-> (waits) -+-> PreBind -> Bind -> bound
                  |         |           |       |      |     |      |        |
                  +---------+-----------+-------+------+-----+------+--------+--> given back

The pre-flight asks the PreBind plugins whether they have work to do. Up to the end of Permit a
plugin can find the pod unschedulable; what goes wrong later is retried after a backoff.

Each step is a call that returns what comes next: a list of instructions for the shell, or the
status that ended it. Nothing here waits: what takes time is an instruction, and its outcome is
an event. The engine owns the cycles and is the only caller; it also un-assumes and requeues the
pod of a cycle that failed, because cache and queue are not this room's.

An asyncio task a pod was rejected: a state that lives in a stack frame can be neither inspected
nor replayed.
"""

from stowage.engine.binding.binding_cycle import BindingCycle, BindingPhase, Proceed, Step
from stowage.engine.binding.waiting_pods import WaitingPods

__all__ = [
    "BindingCycle",
    "BindingPhase",
    "Proceed",
    "Step",
    "WaitingPods",
]
