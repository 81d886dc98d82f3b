"""Runs one openb experiment with the engine of a policy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Protocol, TypeAlias

import msgspec
from msgspec.structs import replace

from stowage.analysis.simulation.openb.arrivals import draw_arrivals
from stowage.analysis.simulation.openb.fragmentation import Fragmentation, Overcommitted
from stowage.analysis.simulation.openb.loads import Rows
from stowage.analysis.simulation.openb.objects import gpus_of, node_object, pod_objects
from stowage.analysis.simulation.openb.trace import OpenbPod, OpenbTrace
from stowage.analysis.simulation.openb.typical_pods import TypicalPod, typical_pods
from stowage.analysis.simulation.policy import Policy
from stowage.analysis.simulation.result import ExperimentFailed, ExperimentResult
from stowage.api.events import (
    AssignedPodSeen,
    BindSucceeded,
    NodeSeen,
    PendingPodGone,
    PendingPodSeen,
)
from stowage.api.instructions import AttemptResult, BindPod, Instruction, ReportProblem
from stowage.api.objects.pod import Pod
from stowage.engine import Engine

SCHEDULER_NAME = "stowage"

#: Takes a placed pod, its node and the numbers of its GPUs there.
Observe: TypeAlias = Callable[[OpenbPod, str, tuple[int, ...]], None]


class OpenbPolicy(Protocol):
    """A policy that may depend on the trace and the seed."""

    @property
    def name(self) -> str:
        """Its name in results."""
        ...

    @property
    def inputs(self) -> object:
        """All that its decisions depend on beside the trace and the seed, as plain data."""
        ...

    def for_run(self, typical: tuple[TypicalPod, ...], seed: int) -> Policy:
        """The policy of one run."""
        ...


class OpenbExperiment(msgspec.Struct, frozen=True):
    """A trace, a policy and a seed; it can be pickled if the policy can.

    Attributes:
        trace: The trace.
        policy: The policy.
        seed: The seed of the arrivals and of the order of nodes.
        fingerprint: A hash of everything the result depends on, by which a sweep recognises results
            that it has.
    """

    trace: OpenbTrace
    policy: OpenbPolicy
    seed: int
    fingerprint: str = ""

    @property
    def key(self) -> str:
        """Distinguishes it from the others of a sweep."""
        return f"{self.trace.name}/{self.policy.name}/{self.seed}"

    def run(self, observe: Observe | None = None) -> ExperimentResult:
        """Let all pods arrive.

        Args:
            observe: Called with each pod that is placed.

        Raises:
            ExperimentFailed: A plugin raised, or the policy placed a pod where it does not fit.
        """
        typical = typical_pods(self.trace)
        arrivals = draw_arrivals(self.trace, self.seed)
        policy = self.policy.for_run(typical, self.seed)
        engine = policy.make_engine({SCHEDULER_NAME}, arrivals.random.draw, _ignore)
        nodes = [
            NodeSeen(node_object(each, arrivals.ranks[each.name])) for each in self.trace.nodes
        ]
        _refuse_problems(engine.handle(nodes, 0.0))
        fragmentation = Fragmentation(self.trace.nodes, typical)
        run = _Run(engine, fragmentation, self.trace.num_gpus, observe)
        try:
            for pod, made in zip(
                arrivals.pods, pod_objects(arrivals.pods, SCHEDULER_NAME), strict=True
            ):
                run.arrive(pod, made)
        except Overcommitted as wrong:
            raise ExperimentFailed(str(wrong)) from wrong
        return run.result(self.trace.name, self.policy.name, self.seed)


class _Run:
    """The cluster of one run, and what has happened in it."""

    def __init__(
        self,
        engine: Engine,
        fragmentation: Fragmentation,
        num_gpus: int,
        observe: Observe | None,
    ) -> None:
        self._observe = observe
        self._engine = engine
        self._fragmentation = fragmentation
        self._rows = Rows(num_gpus)
        self._arrived = self._allocated = self._bound = 0
        self._used: set[str] = set()
        self._failed: Counter[str] = Counter()
        self._now = 0.0

    def arrive(self, pod: OpenbPod, made: Pod) -> None:
        """Let a pod arrive, and be placed or fail for good."""
        engine, uid = self._engine, made.metadata.uid
        self._now += 1.0
        engine.handle((PendingPodSeen(made),), self._now)
        answer = engine.schedule(self._now, 1)
        bind = _binding(answer)
        gone = PendingPodGone(made.metadata.namespace, made.metadata.name, uid)
        self._arrived += pod.total_milli
        if bind is None:
            self._failed[_failure(answer)] += 1
            engine.handle((gone,), self._now)
        else:
            self._place(pod, bind)
            bound = _bound(made, bind)
            succeeded = BindSucceeded(uid, bind.node_name)
            engine.handle((succeeded, gone, AssignedPodSeen(bound)), self._now)
        fragmentation = self._fragmentation
        self._rows.add(
            self._arrived,
            self._allocated,
            float(fragmentation.amounts.sum()),
            int(fragmentation.idle.sum()),
        )

    def _place(self, pod: OpenbPod, bind: BindPod) -> None:
        try:
            gpus = gpus_of(bind.annotations)
        except ValueError as error:
            raise ExperimentFailed(f"{pod.name}: {error}") from error
        if pod.gpus and not gpus:
            text = (
                "the policy notes no GPUs of the pods it places, expected GpuSharing in its profile"
            )
            raise ExperimentFailed(text)
        self._fragmentation.place(pod, bind.node_name, gpus)
        self._allocated += pod.total_milli
        self._bound += 1
        self._used.add(bind.node_name)
        if self._observe is not None:
            self._observe(pod, bind.node_name, tuple(gpus))

    def result(self, trace: str, policy: str, seed: int) -> ExperimentResult:
        """What has happened."""
        series = self._rows.series()
        metrics = {
            "bound": float(self._bound),
            "failed": float(self._failed.total()),
            "nodes_used": float(len(self._used)),
            "allocated_gpu_milli": float(self._allocated),
        }
        metrics |= {each.name: each.y[-1] for each in series}
        metrics["unallocated_gpus_pct"] = round(100.0 - metrics["alloc_pct"], 2)
        by_load = next(each.y for each in series if each.name == "frag_amount_pct")
        metrics["fragmentation"] = fmean(by_load)
        return ExperimentResult(trace, policy, seed, metrics, series, dict(self._failed))


def _binding(answer: Sequence[Instruction]) -> BindPod | None:
    return next((each for each in answer if isinstance(each, BindPod)), None)


def _failure(answer: Sequence[Instruction]) -> str:
    """The reasons of an attempt that placed its pod nowhere."""
    attempt = next((each for each in answer if isinstance(each, AttemptResult)), None)
    if attempt is None:
        raise ExperimentFailed("the policy attempted no pod, expected one attempt for each")
    if attempt.result != "unschedulable":
        raise ExperimentFailed(f"{attempt.pod.key}: {attempt.message or attempt.result}")
    return ", ".join(sorted(attempt.reason_counts)) or attempt.message


def _bound(pod: Pod, bind: BindPod) -> Pod:
    metadata = pod.metadata
    if bind.annotations:
        metadata = replace(metadata, annotations=bind.annotations)
    return replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=bind.node_name))


def _refuse_problems(answer: Sequence[Instruction]) -> None:
    for each in answer:
        if isinstance(each, ReportProblem):
            raise ExperimentFailed(f"{each.subject}: {each.text}")


def _ignore(_event: object) -> None:
    """No plugin of the experiment acts outside of a call; what one posts is not handled."""
