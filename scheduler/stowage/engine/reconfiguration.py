"""Another configuration, between two cycles: new frameworks and queue rules, the same cluster.

The queue and the cache keep what they hold. The frameworks are new with all they remember, so
nothing a class of pods was told under the old configuration is told again. A pod being bound
keeps the framework that reserved its place, to the end. One that waits for extenders is judged
anew when they answer, as it would be after any change of the cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from stowage.api.events import ConfigurationChanged
from stowage.api.instructions import ConfigurationApplied
from stowage.engine.extenders.consulting import drop_consultation
from stowage.engine.machine import Machine
from stowage.engine.preemption.evictions import gate_preemptors
from stowage.engine.queue_rules import queue_rules
from stowage.framework import Framework


def configuration_changed(machine: Machine, event: ConfigurationChanged, now: float) -> None:
    """Take over a configuration, or leave everything as it is.

    Raises:
        InvalidConfiguration: It is none; nothing has changed.
    """
    settings = machine.configure(event.configuration)
    frameworks = {framework.scheduler_name: framework for framework in settings.frameworks}
    for framework in settings.frameworks:
        gate_preemptors(machine, framework)
    waiting = machine.queue.reconfigure(
        queue_rules(settings.frameworks, settings.queue_settings), now
    )
    dropped = Counter(queued.scheduler_name for queued in waiting)
    for queued in waiting:
        machine.statuses.forget(queued.uid)
    dropped.update(_drop_consultations(machine, frameworks))
    machine.frameworks = frameworks
    machine.configuration = event.hash
    for name, number in dropped.items():
        text = f"no profile any more, {number} pods leave the queue (expected a profile of theirs)"
        machine.problem(f"scheduler name {name}", text)
    machine.emit(ConfigurationApplied(event.hash, tuple(frameworks), dict(dropped)))


def _drop_consultations(machine: Machine, frameworks: Mapping[str, Framework]) -> Iterator[str]:
    """End the attempts of pods that wait for extenders and that no profile wants any more."""
    for consultation in list(machine.consultations):
        name = consultation.info.scheduler_name
        if name not in frameworks:
            drop_consultation(machine, consultation.queued.uid)
            machine.statuses.forget(consultation.queued.uid)
            yield name
