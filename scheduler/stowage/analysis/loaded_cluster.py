"""An engine that knows a cluster's objects and makes no decision unasked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.api.instructions import ReportProblem
from stowage.api.objects.pod import Pod
from stowage.engine import Engine, make_engine
from stowage.framework import Framework


class LoadedCluster(msgspec.Struct, frozen=True):
    """A cluster to ask questions about.

    Attributes:
        objects: The objects it was made of.
        engine: The engine that has seen them; questions leave it as it is.
        stand_ins: Scheduler name -> the profile that answers for it, where no profile has the name.
        problems: The objects that the engine could not use.
    """

    objects: ClusterObjects
    engine: Engine
    stand_ins: Mapping[str, str]
    problems: tuple[str, ...] = ()


def load_cluster(
    objects: ClusterObjects,
    frameworks: Sequence[Framework],
    *,
    wall_clock: Callable[[], float] = lambda: 0.0,
    scheduler_names: Iterable[str] = (),
) -> LoadedCluster:
    """Show an engine the objects of a cluster, at its time 0; of tied nodes the first one wins.

    A pod whose ``schedulerName`` no profile has is decided about by the first profile.

    Args:
        objects: The objects.
        frameworks: One per profile.
        wall_clock: Returns the seconds since the epoch.
        scheduler_names: The scheduler names of pods that are created later.
    """
    named = {*scheduler_names, *(pod.spec.scheduler_name for pod in objects.pods())}
    stand_ins = stand_ins_for(named, frameworks)
    engine = make_engine([*frameworks, *stand_ins], lambda _num_ties: 0, wall_clock=wall_clock)
    answer = engine.handle(objects.events(), 0.0)
    objects.pods_by_node()  # made once, for all questions of a process
    problems = [
        each.text if each.text.startswith(each.subject) else f"{each.subject}: {each.text}"
        for each in answer
        if isinstance(each, ReportProblem)
    ]
    invalid = [str(each) for each in objects.invalid]
    return LoadedCluster(
        objects,
        engine,
        {each.scheduler_name: frameworks[0].scheduler_name for each in stand_ins},
        (*invalid, *problems),
    )


def stand_in_notes(cluster: LoadedCluster, pods: Iterable[Pod]) -> tuple[str, ...]:
    """A sentence for each scheduler name of these pods that no profile has."""
    names = Counter(pod.spec.scheduler_name for pod in pods)
    return tuple(
        f"no profile has the scheduler name {name} of {number} {'pod' if number == 1 else 'pods'}: "
        f"the profile {cluster.stand_ins[name]} decides instead"
        for name, number in sorted(names.items())
        if name in cluster.stand_ins
    )


def stand_ins_for(
    scheduler_names: Iterable[str], frameworks: Sequence[Framework]
) -> list[Framework]:
    """Copies of the first profile for the scheduler names that no profile has."""
    others = sorted(set(scheduler_names) - {each.scheduler_name for each in frameworks})
    first = frameworks[0].profile
    return [Framework(msgspec.structs.replace(first, scheduler_name=name)) for name in others]
