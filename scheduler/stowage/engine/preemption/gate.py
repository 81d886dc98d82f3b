"""The gate that keeps preemptors out of the active queue during their evictions."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from stowage.engine.state.engine_state import EngineState
from stowage.framework import Framework


def gate_preemptors(state: EngineState, framework: Framework) -> None:
    """Let the framework's PreEnqueue plugins ask which pods wait for evictions."""
    framework.gating.connect(
        partial(is_preempting, state),
        lambda: bool(state.preemptions),
        partial(released_preemptors, state),
    )


def is_preempting(state: EngineState, uid: str) -> bool:
    """Whether a pod has to wait for its evictions (``IsPodRunningPreemption`` of v1.36).

    It need not any more when its last victim is gone or terminating, whether or not the API server
    has answered: the event of the victim's end must not find the gate closed.
    """
    preemption = state.preemptions.get(uid)
    if preemption is None:
        return False
    if not preemption.is_evicting_last:
        return True
    last_victim = state.cache.get_pod(preemption.last_victim.uid)
    return last_victim is not None and not last_victim.terminating


def released_preemptors(state: EngineState) -> Collection[str]:
    """The gated pods that need not wait for evictions any more; an event moves them."""
    state.preemptions.keep_released(
        uid
        for uid in state.preemptions.released
        if (queued := state.queue.get(uid)) is not None
        and queued.is_gated
        and not is_preempting(state, uid)
    )
    return state.preemptions.released
