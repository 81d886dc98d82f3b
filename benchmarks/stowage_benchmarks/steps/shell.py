"""The scheduling loop with an engine whose steps are measured, and an API server that agrees."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from stowage.api.config.loading import DEFAULT_SCHEDULER_NAME
from stowage.api.decoding.decode import ObjectList, ObjectT
from stowage.api.decoding.pages import decode_list_steps
from stowage.api.events import (
    AssignedPodSeen,
    BindSucceeded,
    Event,
    PendingPodGone,
    PendingPodSeen,
)
from stowage.api.instructions import BindPod, Instruction
from stowage.api.interruptible import Interruptible
from stowage.api.objects.meta import ListMeta
from stowage.api.objects.pod import Pod
from stowage.api.reflected_kinds import ReflectedKind
from stowage.engine import Engine
from stowage.operator.dispatcher import Dispatcher
from stowage.operator.garbage_collection import freeze_tracked_objects
from stowage.operator.inbox import Inbox
from stowage.operator.loop import LoopOptions, SchedulingLoop
from stowage.operator.watch.pending_pods import PendingPods
from stowage.operator.watch.reflector import PAGE_SIZE
from stowage_benchmarks.core.run import bench_engine
from stowage_benchmarks.steps.meter import Meter
from stowage_benchmarks.workloads import Json

_METADATA = {"resourceVersion": "1", "continue": "more"}
"""Of each page: the list goes on."""


class MeasuredShell:
    """The scheduling loop, without I/O.

    Its clock is the CPU time of this thread, so a busy machine does not end a slice early. Each
    binding succeeds, and the watches show it in a later turn.

    Attributes:
        engine: The engine; what it is told directly is not measured.
        meter: Measures the steps: turns of the loop, and pages of lists that are decoded.
        num_bound: Number of pods bound.
    """

    def __init__(self, engine: Engine | None = None) -> None:
        self.engine = bench_engine() if engine is None else engine
        self.meter = Meter()
        self.num_bound = 0
        self._inbox = Inbox()
        self._pods = PendingPods(self._inbox, [DEFAULT_SCHEDULER_NAME])
        self._pending: dict[str, Pod] = {}
        self._waited_s = 0.0
        self._may_schedule = False
        self._loop = SchedulingLoop(
            cast("Engine", _MeasuredEngine(self.engine, self.meter, self._noted)),
            self._inbox,
            cast("Dispatcher", _Agreement(self._answer)),
            lambda: self._may_schedule,
            self.now,
            LoopOptions(),
        )

    def now(self) -> float:
        """Seconds of the loop's clock."""
        return time.thread_time() + self._waited_s

    def tell(self, events: Iterable[Event]) -> None:
        """Let the engine handle the events of the first lists, unmeasured."""
        self.engine.handle(self._noted(events), self.now())
        freeze_tracked_objects()

    def list_pods(self, pods: Iterable[Json], *, is_whole: bool = False) -> None:
        """Read pages of a list of pending pods, and handle them.

        Args:
            pods: The pods.
            is_whole: Whether these are all pages, so that pods seen before are gone.
        """
        for body in _pages(pods):
            page = self._decoded(Pod, body)
            with self.meter.step("page of pending pods"):
                self._pods.handle_page(page, body, is_first=False)
            self.turn()
        if is_whole:
            with self.meter.step("end of the list"):
                self._pods.handle_page(ObjectList(ListMeta("1")), b"", is_first=False)
            self.turn()

    def list_objects(self, kind: ReflectedKind[Any], objects: Iterable[Json]) -> None:
        """Read the pages of a list of another kind, and handle them."""
        for body in _pages(objects):
            page = self._decoded(kind.type, body)
            with self.meter.step(f"page of {kind.path.rpartition('/')[2]}"):
                self._inbox.put_all(map(kind.seen, page.items))
            self.turn()

    def receive(self, events: Iterable[Event]) -> None:
        """Handle these events."""
        self._inbox.put_all(events)
        self.turn()

    def schedule(self) -> None:
        """Schedule and bind until no pod is ready."""
        self._may_schedule = True
        self.turn()
        self._may_schedule = False

    def schedule_for(self, turns: int) -> None:
        """Schedule and bind in this many turns."""
        self._may_schedule = True
        for _ in range(turns):
            with self.meter.step("loop"):
                self._loop.turn()
        self._may_schedule = False

    def wait(self, seconds: float) -> None:
        """Let time pass, and handle what is due."""
        self._waited_s += seconds
        self.turn()

    def turn(self) -> None:
        """Let the loop take turns until nothing is left to do."""
        is_unfinished = True
        while is_unfinished:
            with self.meter.step("loop"):
                is_unfinished = self._loop.turn()
            is_unfinished = is_unfinished or len(self._inbox) > 0

    def _decoded(self, kind: type[ObjectT], body: bytes) -> ObjectList[ObjectT]:
        """The page, which the watches decode in steps."""
        steps = decode_list_steps(kind, body)
        while True:
            with self.meter.step("decode"):
                try:
                    next(steps)
                except StopIteration as end:
                    page: ObjectList[ObjectT] = end.value
                    return page

    def _noted(self, events: Iterable[Event]) -> Iterator[Event]:
        """The events; notes the pending pods, whose bindings are confirmed later."""
        for event in events:
            if isinstance(event, PendingPodSeen):
                self._pending[event.pod.metadata.uid] = event.pod
            yield event

    def _answer(self, instructions: Sequence[Instruction]) -> None:
        for each in instructions:
            if isinstance(each, BindPod):
                self.num_bound += 1
                self._inbox.put_all(self._confirmation(each))

    def _confirmation(self, binding: BindPod) -> tuple[Event, ...]:
        """What the watches and the answer to the Binding say."""
        reference, node_name = binding.pod, binding.node_name
        pod = self._pending.pop(reference.uid)
        return (
            BindSucceeded(reference.uid, node_name),
            PendingPodGone(reference.namespace, reference.name, reference.uid),
            AssignedPodSeen(replace(pod, spec=replace(pod.spec, node_name=node_name))),
        )


class _MeasuredEngine:
    """The calls of the loop, with the parts of a step: each event, each step of an attempt."""

    def __init__(
        self, engine: Engine, meter: Meter, note: Callable[[Iterable[Event]], Iterator[Event]]
    ) -> None:
        self._engine = engine
        self._meter = meter
        self._note = note
        self._kind = ""
        self.next_deadline = engine.next_deadline
        self.has_ready_pods = engine.has_ready_pods

    @property
    def is_in_steps(self) -> bool:
        return self._engine.is_in_steps

    def handling_steps(
        self, arrived: Iterable[Event], now: float
    ) -> Interruptible[list[Instruction]]:
        self._kind = "timeouts"
        return self._measured(self._engine.handling_steps(self._named(arrived), now))

    def _named(self, arrived: Iterable[Event]) -> Iterator[Event]:
        for event in self._note(arrived):
            self._kind = type(event).__name__
            self._meter.enter(self._kind)
            yield event
        self._kind = "answer"
        self._meter.enter(self._kind)

    def scheduling_steps(
        self, now: float, budget: int, is_over: Callable[[], bool]
    ) -> Interruptible[list[Instruction]]:
        self._kind = "schedule"
        return self._measured(self._engine.scheduling_steps(now, budget, is_over))

    def _measured(self, work: Interruptible[list[Instruction]]) -> Interruptible[list[Instruction]]:
        """The steps, each measured as a part of the kind that is set."""
        while True:
            before = self._meter.enter(self._kind)
            try:
                next(work)
            except StopIteration as end:
                instructions: list[Instruction] = end.value
                return instructions
            finally:
                self._meter.enter(before)
            yield


class _Agreement:
    """Carries out every instruction at once."""

    num_unfinished_bindings = 0

    def __init__(self, dispatch: Callable[[Sequence[Instruction]], None]) -> None:
        self.dispatch = dispatch


def _pages(objects: Iterable[Json]) -> Iterator[bytes]:
    """The bodies of the pages of a list."""
    for page in batched(objects, PAGE_SIZE):
        yield msgspec.json.encode({"metadata": _METADATA, "items": page})


def batched(items: Iterable[Json], size: int) -> Iterator[list[Json]]:
    """The items in lists of this size."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch
