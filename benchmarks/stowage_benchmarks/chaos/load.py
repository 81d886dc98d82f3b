"""The load of `stowage bench chaos`: users, a garbage collector and another scheduler.

They use the calm API server, so every change that they ask for is made.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from random import Random

import msgspec

from simcluster.harness.apply import create
from stowage.api.instructions import PodReference
from stowage.operator.client.api_client import ApiClient
from stowage.operator.client.api_error import ApiError
from stowage.operator.writers.binder import binding_body
from stowage_benchmarks.chaos.history import cpu_milli_of
from stowage_benchmarks.chaos.ledger import NODE_CPU_MILLI, Ledger
from stowage_benchmarks.chaos.pods import PodLife
from stowage_benchmarks.e2e.scenarios import NAMESPACE
from stowage_benchmarks.workloads import Json

_TICK_S = 0.05
_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_GROUPS = f"/apis/scheduling.k8s.io/v1alpha2/namespaces/{NAMESPACE}/podgroups"
_AT_ONCE = {"gracePeriodSeconds": 0}
_OPEN_GATE = b'{"spec":{"schedulingGates":null}}'
_MAX_IN_FLIGHT = 32


@contextmanager
def others_may_be_faster() -> Iterator[None]:
    """Ignore that a pod is gone, bound, or exists already."""
    try:
        yield
    except ApiError as error:
        if error.status not in (404, 409):
            raise


class ChaosLoad:
    """Creates, binds and deletes pods during a run.

    Args:
        client: Of the calm API server.
        ledger: The state of the cluster.
        lives: The pods to create.
        random: Draws what `lives` leaves open.
    """

    def __init__(
        self, client: ApiClient, ledger: Ledger, lives: Iterator[PodLife], random: Random
    ) -> None:
        self._client = client
        self._ledger = ledger
        self._lives = lives
        self._random = random
        self._slots = asyncio.Semaphore(_MAX_IN_FLIGHT)
        self._tasks: set[asyncio.Task[None]] = set()
        self._later: set[asyncio.Task[None]] = set()

    async def create_pods(self, per_s: float) -> None:
        """Create pods at that rate until cancelled.

        Raises:
            ApiError: one was refused.
        """
        started_at, num_created = time.monotonic(), 0
        while True:
            await asyncio.sleep(_TICK_S)
            due = int((time.monotonic() - started_at) * per_s)
            for _ in range(due - num_created):
                await self._start(self._live(next(self._lives)))
            num_created = due
            self._raise_failures()

    async def remove_finished(self) -> None:
        """Delete pods that have finished until cancelled, as the garbage collector does.

        The groups of which no member is left are deleted too.
        """
        asked: set[str] = set()
        asked_groups: set[str] = set()
        while True:
            await asyncio.sleep(_TICK_S)
            for name in self._ledger.gangs.ended():
                if name not in asked_groups:
                    asked_groups.add(name)
                    await self._start(self._delete_group(name))
            asked &= self._ledger.finished
            for uid in self._ledger.finished - asked:
                asked.add(uid)
                # The pod may have gone while this task waited for a slot.
                pod = self._ledger.pods.get(uid)
                if pod is not None:
                    await self._start(self._delete(pod.name, uid))
            self._raise_failures()

    def forget_intentions(self) -> None:
        """Cancel all scheduled actions on existing pods."""
        for task in self._later:
            task.cancel()
        self._later.clear()

    async def close(self) -> None:
        """Cancel all work."""
        self.forget_intentions()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _bind_somewhere(self, pod: Json) -> None:
        """Bind a pod as another scheduler would, once some node has room for it."""
        cpu_milli, metadata = cpu_milli_of(pod["spec"]), pod["metadata"]
        reference = PodReference(metadata["namespace"], metadata["name"], metadata["uid"])
        while (node_name := self._crowded_node(cpu_milli)) is None:  # noqa: ASYNC110 - the ledger has no event for it
            await asyncio.sleep(1.0)
        body = binding_body(reference, node_name)
        with others_may_be_faster():
            await self._client.post(f"{_PODS}/{reference.name}/binding", body)

    def _crowded_node(self, cpu_milli: int) -> str | None:
        """The fullest of a few nodes with enough free CPU, where conflicts are likely."""
        ledger = self._ledger
        names = self._random.sample(sorted(ledger.node_names), min(8, len(ledger.node_names)))
        fitting = [name for name in names if ledger.cpu_used(name) + cpu_milli <= NODE_CPU_MILLI]
        return max(fitting, key=ledger.cpu_used, default=None)

    async def _live(self, life: PodLife) -> None:
        if life.group is not None:
            await create(self._client, life.group)
        with others_may_be_faster():
            pod = await self._create(life.manifest)
            is_taken_away = not life.needs_more_than_a_node and self._random.random() < 0.002
            if life.is_foreign or is_taken_away:
                self._after(self._random.random(), lambda: self._bind_somewhere(pod))
            if life.opens_after_s is not None:
                self._after(
                    life.opens_after_s,
                    lambda: self._patch(life.name, _OPEN_GATE),
                )
            if life.deleted_after_s is not None:
                self._after(life.deleted_after_s, lambda: self._end(life, pod["metadata"]["uid"]))

    async def _create(self, manifest: Json) -> Json:
        body = await self._client.post(_PODS, msgspec.json.encode(manifest))
        pod: Json = msgspec.json.decode(body)
        return pod

    async def _patch(self, name: str, body: bytes) -> None:
        with others_may_be_faster():
            await self._client.patch(f"{_PODS}/{name}", body)

    async def _end(self, life: PodLife, uid: str) -> None:
        await self._delete(life.name, uid)
        if life.is_made_again:
            with others_may_be_faster():
                await create(self._client, life.manifest)

    async def _delete(self, name: str, uid: str) -> None:
        body = msgspec.json.encode({**_AT_ONCE, "preconditions": {"uid": uid}})
        with others_may_be_faster():
            await self._client.delete(f"{_PODS}/{name}", body)

    async def _delete_group(self, name: str) -> None:
        with others_may_be_faster():
            await self._client.delete(f"{_GROUPS}/{name}", b"{}")

    async def _start(self, work: Awaitable[None]) -> None:
        await self._slots.acquire()
        task = asyncio.ensure_future(work)
        task.add_done_callback(lambda _task: self._slots.release())
        self._tasks.add(task)

    def _after(self, seconds: float, work: Callable[[], Awaitable[None]]) -> None:
        async def later() -> None:
            await asyncio.sleep(seconds)
            await work()

        self._later.add(asyncio.create_task(later()))

    def _raise_failures(self) -> None:
        for tasks in (self._tasks, self._later):
            done = {task for task in tasks if task.done()}
            tasks.difference_update(done)
            for task in done:
                task.result()
