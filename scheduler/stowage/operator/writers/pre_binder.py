"""Runs PreBind plugins, the only plugin code that may wait and do I/O."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

import structlog

from stowage.api.events import PreBindFinished
from stowage.api.instructions import PodReference, RunPreBind
from stowage.api.status import Code, Status, error
from stowage.operator.writers.pod_runs import PodRuns

log = structlog.get_logger("stowage.operator.writers.pre_binder")

PRE_BIND_LIMIT_S = 600.0
"""Time limit of one PreBind plugin for one pod."""

#: (pod UID, plugin) -> the plugin's coroutine; None if the pod is gone. See ``Engine.pre_bind``.
PreBindWork: TypeAlias = Callable[[str, str], Coroutine[Any, Any, Status] | None]


class PreBinder:
    """Awaits the plugins of an instruction one after the other, each within a time limit.

    Args:
        work: Makes the coroutine of a plugin.
        limit_s: Time limit of one plugin for one pod.
        end_within_s: How long a cancelled plugin may take to end. After that its task is
            abandoned and its answer ignored.
    """

    def __init__(self, work: PreBindWork, limit_s: float, end_within_s: float = 5.0) -> None:
        self._work = work
        self._limit_s = limit_s
        self._end_within_s = end_within_s
        self._runs = PodRuns()

    async def run(self, instruction: RunPreBind) -> PreBindFinished | None:
        """Run the plugins until one does not succeed.

        Returns:
            The event for the engine; None if the pod is gone or the run was stopped.
        """
        uid, number = instruction.pod.uid, instruction.number
        async with self._runs.begin(uid) as stopped:
            for plugin in () if stopped.is_set() else instruction.plugins:
                status = await self._run_plugin(instruction.pod, plugin, stopped)
                if status is None or stopped.is_set():
                    return None
                if not status.is_success:
                    return PreBindFinished(uid, number, status.code, status.reasons, status.plugin)
            return None if stopped.is_set() else PreBindFinished(uid, number, Code.SUCCESS)

    def stop(self, pod: PodReference) -> None:
        """Cancel the plugin that runs for this pod, if any; no further one runs."""
        self._runs.stop(pod.uid)

    async def _run_plugin(
        self, pod: PodReference, plugin: str, stopped: asyncio.Event
    ) -> Status | None:
        work = self._work(pod.uid, plugin)
        if work is None:
            return None
        # A separate task can be abandoned if it ignores its cancellation.
        task = asyncio.create_task(work, name=f"{plugin} of {pod.key}")
        stopping = asyncio.create_task(stopped.wait())
        try:
            await asyncio.wait(
                {task, stopping}, timeout=self._limit_s, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            stopping.cancel()
            is_late = not task.done()
            if is_late:
                await self._end(task, pod, plugin)
        if is_late and (not task.done() or task.cancelled()):
            text = f'running PreBind plugin "{plugin}": not done after {self._limit_s:g} s'
            return error(text, plugin=plugin)
        return _outcome(task, pod, plugin)

    async def _end(self, task: asyncio.Task[Status], pod: PodReference, plugin: str) -> None:
        # Let a task that has not started yet begin, so that its cleanup code runs.
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task}, timeout=self._end_within_s)
        if not task.done():
            log.warning("PreBind plugin does not end; left behind", plugin=plugin, pod=pod.key)
            task.add_done_callback(_retrieve_exception)


def _outcome(task: asyncio.Task[Status], pod: PodReference, plugin: str) -> Status:
    """The answer of a finished plugin, or an error Status."""
    doing = f'running PreBind plugin "{plugin}"'
    if task.cancelled():
        return error(f"{doing}: it cancelled itself", plugin=plugin)
    exception = task.exception()
    if exception is None:
        return task.result()
    # The engine needs an outcome of every pod, also if the plugin returned no Status.
    log.error("PreBind plugin failed", plugin=plugin, pod=pod.key, exc_info=exception)
    return error(f"{doing}: {exception!r}", plugin=plugin)


def _retrieve_exception(task: asyncio.Task[Status]) -> None:
    """Retrieve the exception of an abandoned task; asyncio logs exceptions never retrieved."""
    if not task.cancelled():
        task.exception()
