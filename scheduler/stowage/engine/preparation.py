"""What no pod has asked for before is found out in steps before the attempt of a pod."""

from __future__ import annotations

from stowage.api.interruptible import Interruptible
from stowage.engine.state.engine_state import EngineState
from stowage.state.pods.pod_info import PodInfo


def has_to_prepare(info: PodInfo) -> bool:
    """Whether the pod asks for more than the resources of nodes."""
    return bool(info.pod_class.node_labels or info.spec.resource_claims)


def preparing_steps(state: EngineState, info: PodInfo) -> Interruptible[None]:
    """Build what is missing for the attempt of a pod that follows."""
    yield from state.cache.snapshot().label_column_steps(info.pod_class)
    if info.spec.resource_claims:
        yield from _let_plugins_prepare(state, info)


def _let_plugins_prepare(state: EngineState, info: PodInfo) -> Interruptible[None]:
    """Let plugins prepare the cycle of a pod; a failure is reported, and the cycle goes on."""
    framework = state.frameworks[info.scheduler_name]
    try:
        yield from framework.prepare(info, state.cache.snapshot(), state.limits.start)
    except MemoryError:
        raise
    except Exception as fault:
        state.outbox.report(f"Pod {info.key}", f"its cycle is not prepared: {fault!r}")
