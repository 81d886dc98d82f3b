"""A new configuration: new frameworks and queue rules on the same cluster.

Queue and cache keep their contents. The frameworks are new, and their caches are empty. A pod that
is being bound keeps the framework that reserved for it. A pod that waits for extenders is evaluated
by the new framework when they answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from stowage.api.config.loading import InvalidConfiguration
from stowage.api.events import ConfigurationChanged
from stowage.api.instructions import ConfigurationApplied, ConfigurationFailed
from stowage.api.interruptible import Interruptible
from stowage.engine.extenders.consulting import drop_consultation
from stowage.engine.preemption.gate import gate_preemptors
from stowage.engine.queue_rules import queue_rules
from stowage.engine.state.engine_state import EngineState
from stowage.framework import Framework


def configuration_changed(
    state: EngineState, event: ConfigurationChanged, now: float
) -> Interruptible[None]:
    """Activate a configuration; `ConfigurationApplied` or `ConfigurationFailed` reports the end.

    Raises:
        InvalidConfiguration: The configuration is invalid; the state has not changed.
    """
    try:
        yield from _activate(state, event, now)
    except Exception as fault:
        text = str(fault) if isinstance(fault, InvalidConfiguration) else repr(fault)
        state.outbox.emit(ConfigurationFailed(event.hash, text))
        raise


def _activate(state: EngineState, event: ConfigurationChanged, now: float) -> Interruptible[None]:
    settings = state.configure(event.configuration)
    frameworks = {framework.scheduler_name: framework for framework in settings.frameworks}
    for framework in settings.frameworks:
        gate_preemptors(state, framework)
        framework.read_snapshots(state.cache.snapshot)
    waiting = yield from state.queue.reconfigure_steps(
        queue_rules(settings.frameworks, settings.queue_settings), now
    )
    dropped = Counter(queued.scheduler_name for queued in waiting)
    for queued in waiting:
        state.statuses.forget(queued.uid)
        state.cache.forget_pending_member(queued.uid)
    dropped.update(_drop_consultations(state, frameworks))
    state.frameworks = frameworks
    state.configuration = event.hash
    for name, number in dropped.items():
        text = f"no profile any more, {number} pods leave the queue (expected a profile of theirs)"
        state.outbox.report(f"scheduler name {name}", text)
    state.outbox.emit(ConfigurationApplied(event.hash, tuple(frameworks), dict(dropped)))


def _drop_consultations(state: EngineState, frameworks: Mapping[str, Framework]) -> Iterator[str]:
    """End the attempts of pods that wait for extenders and whose profile was removed."""
    for consultation in list(state.consultations):
        name = consultation.info.scheduler_name
        if name not in frameworks:
            drop_consultation(state, consultation.queued.uid)
            state.statuses.forget(consultation.queued.uid)
            state.cache.forget_pending_member(consultation.queued.uid)
            yield name
