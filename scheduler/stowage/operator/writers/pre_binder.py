"""Runs PreBind plugins: the only code of plugins that may wait and do I/O."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

import structlog

from stowage.api.events import PreBindFinished
from stowage.api.instructions import PodReference, RunPreBind
from stowage.api.status import Code, Status, error

log = structlog.get_logger("stowage.operator.writers.pre_binder")

#: (pod UID, plugin) -> its work; None if the pod is gone. ``Engine.pre_bind``.
PreBindWork: TypeAlias = Callable[[str, str], Coroutine[Any, Any, Status] | None]


class PreBinder:
    """Awaits the plugins of an instruction one after the other, each within a time limit.

    Args:
        work: Gives the coroutine of a plugin.
        limit_s: How long one plugin may take for one pod.
        end_within_s: How long one that was told to end may take for that; one that does not end
            is left behind, and its answer is nobody's any more.
    """

    def __init__(self, work: PreBindWork, limit_s: float, end_within_s: float = 5.0) -> None:
        self._work = work
        self._limit_s = limit_s
        self._end_within_s = end_within_s
        self._stopped: dict[str, asyncio.Event] = {}

    async def run(self, instruction: RunPreBind) -> PreBindFinished | None:
        """Run all plugins, or up to the first that does not succeed.

        Returns:
            What the engine is told; None if the pod is gone and nobody wants to know.
        """
        uid = instruction.pod.uid
        stopped = self._stopped[uid] = asyncio.Event()
        try:
            for plugin in instruction.plugins:
                status = await self._run_plugin(instruction.pod, plugin, stopped)
                if status is None or stopped.is_set():
                    return None
                if not status.is_success:
                    return PreBindFinished(uid, status.code, status.reasons, status.plugin)
        finally:
            del self._stopped[uid]
        return PreBindFinished(uid, Code.SUCCESS)

    def stop(self, pod: PodReference) -> None:
        """Cancel what runs for this pod, if anything does."""
        stopped = self._stopped.get(pod.uid)
        if stopped is not None:
            stopped.set()

    async def _run_plugin(
        self, pod: PodReference, plugin: str, stopped: asyncio.Event
    ) -> Status | None:
        work = self._work(pod.uid, plugin)
        if work is None:
            return None
        # A task of its own: one that ignores that it was cancelled can be left behind.
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
        # A task that has not begun would never run, and never see that it is being ended.
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task}, timeout=self._end_within_s)
        if not task.done():
            log.warning("PreBind plugin does not end; left behind", plugin=plugin, pod=pod.key)
            task.add_done_callback(_take_notice)


def _outcome(task: asyncio.Task[Status], pod: PodReference, plugin: str) -> Status:
    """What a plugin that is done has answered, or the error that came of it."""
    doing = f'running PreBind plugin "{plugin}"'
    if task.cancelled():
        return error(f"{doing}: it cancelled itself", plugin=plugin)
    problem = task.exception()
    if problem is None:
        return task.result()
    # E.g. no Status was returned. Without an answer the pod would never be heard of again.
    log.error("PreBind plugin failed", plugin=plugin, pod=pod.key, exc_info=problem)
    return error(f"{doing}: {problem!r}", plugin=plugin)


def _take_notice(task: asyncio.Task[Status]) -> None:
    """Look at what came of a task nobody waits for, or asyncio complains that nobody did."""
    if not task.cancelled():
        task.exception()
