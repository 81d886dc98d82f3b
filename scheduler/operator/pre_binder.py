"""Runs PreBind plugins: the only code of plugins that may wait and do I/O."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

import structlog

from scheduler.api.events import PreBindFinished
from scheduler.api.instructions import PodReference, RunPreBind
from scheduler.api.status import Code, Status, error

log = structlog.get_logger("scheduler.operator.pre_binder")

#: (pod UID, plugin) -> its work; None if the pod is gone. ``Engine.pre_bind``.
PreBindWork: TypeAlias = Callable[[str, str], Coroutine[Any, Any, Status] | None]


class PreBinder:
    """Awaits the plugins of an instruction one after the other, each within a time limit.

    Args:
        work: Gives the coroutine of a plugin.
        limit_s: How long one plugin may take for one pod.
    """

    def __init__(self, work: PreBindWork, limit_s: float) -> None:
        self._work = work
        self._limit_s = limit_s
        self._scopes: dict[str, asyncio.Timeout] = {}
        self._stopped: set[str] = set()

    async def run(self, instruction: RunPreBind) -> PreBindFinished | None:
        """Run all plugins, or up to the first that does not succeed.

        Returns:
            What the engine is told; None if the pod is gone and nobody wants to know.
        """
        uid = instruction.pod.uid
        try:
            for plugin in instruction.plugins:
                status = await self._run_plugin(instruction.pod, plugin)
                if status is None or uid in self._stopped:
                    return None
                if not status.is_success:
                    return PreBindFinished(uid, status.code, status.reasons, status.plugin)
        finally:
            self._stopped.discard(uid)
        return PreBindFinished(uid, Code.SUCCESS)

    def stop(self, pod: PodReference) -> None:
        """Cancel what runs for this pod, if anything does."""
        scope = self._scopes.get(pod.uid)
        if scope is not None:
            self._stopped.add(pod.uid)
            scope.reschedule(asyncio.get_running_loop().time())

    async def _run_plugin(self, pod: PodReference, plugin: str) -> Status | None:
        work = self._work(pod.uid, plugin)
        if work is None:
            return None
        scope = asyncio.timeout(self._limit_s)
        self._scopes[pod.uid] = scope
        try:
            async with scope:
                return await work
        except TimeoutError:
            text = f'running PreBind plugin "{plugin}": not done after {self._limit_s:g} s'
            return error(text, plugin=plugin)
        except asyncio.CancelledError:
            if _is_being_cancelled():
                raise
            text = f'running PreBind plugin "{plugin}": it cancelled itself'
            return error(text, plugin=plugin)
        except Exception as problem:
            # E.g. no Status was returned. Without an answer the pod would never be heard of again.
            log.exception("PreBind plugin failed", plugin=plugin, pod=pod.key)
            return error(f'running PreBind plugin "{plugin}": {problem!r}', plugin=plugin)
        finally:
            del self._scopes[pod.uid]


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
