"""An event loop with a virtual clock, whose processes can be stopped and killed."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from heapq import heappop, heappush
from itertools import islice
from traceback import extract_stack
from typing import Any
from weakref import ref

#: The simulated process that a callback belongs to; empty for the simulation itself.
PROCESS: ContextVar[str] = ContextVar("process", default="")

#: The context of the simulation itself, which runs whatever happens to a process.
OUTSIDE: Context = copy_context()

_TASKS_PER_CLEANUP = 256

STEPS_PER_INSTANT = 20_000
"""More callbacks and readings of the clock without an advance of it are an endless round."""

_CALLBACKS_NAMED = 10
_FUNCTIONS_NAMED = 6


class NothingLeftToDo(Exception):  # noqa: N818 - it names the finding
    """No callback is ready and no timer is set."""


class ClockStandsStill(Exception):  # noqa: N818 - it names the finding
    """Callbacks ready each other without end, or one does not return; the text names them."""


class ProcessHandle(asyncio.Handle):
    """A callback that knows the simulated process it belongs to.

    A seed makes tens of thousands: they ask the loop for nothing, neither when they are made nor
    when they are cancelled, and what is the same for all of them belongs to the class.
    """

    _cancelled = False
    _repr = None
    _source_traceback = None

    def __init__(
        self,
        callback: Callable[..., object],
        args: Any,
        loop: asyncio.AbstractEventLoop,
        context: Context | None,
    ) -> None:
        self._context = copy_context() if context is None else context
        self._loop = loop
        self._callback = callback
        self._args = args

    @property
    def process(self) -> str:
        """The name of the process; empty for the simulation itself."""
        return str(self._context.get(PROCESS, ""))

    def cancel(self) -> None:
        """Do not run it."""
        self._cancelled = True
        self._callback = self._args = None  # type: ignore[assignment]


class ProcessTimer(ProcessHandle, asyncio.TimerHandle):
    """A timer that knows the simulated process it belongs to."""

    _scheduled = True

    def __init__(
        self,
        when: float,
        callback: Callable[..., object],
        args: Any,
        loop: asyncio.AbstractEventLoop,
        context: Context | None,
    ) -> None:
        # As in ProcessHandle, without another call.
        self._context = copy_context() if context is None else context
        self._loop = loop
        self._callback = callback
        self._args = args
        self._when = when


def _description(handle: ProcessHandle) -> str:
    """What a handle runs: the task if it is a step of one, else the callback."""
    if handle._cancelled:  # noqa: SLF001 - as the loop does
        return "a cancelled callback"
    task = getattr(handle._callback, "__self__", None)  # noqa: SLF001
    runs = task if isinstance(task, asyncio.Task) else handle._callback  # noqa: SLF001
    return f"{runs!r} of {handle.process or 'the simulation'}"


class VirtualLoop(asyncio.BaseEventLoop):
    """Runs callbacks in order; without ready callbacks the clock jumps to the next timer.

    Callbacks of a stopped process are kept until it continues, as with SIGSTOP. Callbacks of a
    killed process never run, not even to clean up, as with SIGKILL.
    """

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        self._timers: list[tuple[float, int, ProcessTimer]] = []
        self._num_timers = 0
        #: Callbacks and readings of the clock since it moved.
        self._num_steps = 0
        self._endless_round: ClockStandsStill | None = None
        self._stopped: dict[str, list[ProcessHandle]] = {}
        #: The stopped and the killed processes.
        self._not_running: set[str] = set()
        self._killed: defaultdict[str, list[Any]] = defaultdict(list)
        #: The tasks of each process: cheap references without callbacks, which are cleaned up now
        #: and then.
        self._tasks: defaultdict[str, list[ref[asyncio.Task[Any]]]] = defaultdict(list)
        self.set_task_factory(self._make_task)

    def time(self) -> float:
        """Virtual seconds since the beginning.

        Raises:
            ClockStandsStill: for the caller that reads it without end; `run_forever` raises it too.
        """
        self._num_steps += 1
        if self._num_steps > STEPS_PER_INSTANT:
            callers = [frame.name for frame in extract_stack(limit=_FUNCTIONS_NAMED + 1)[:-1]]
            runs = f"{PROCESS.get() or 'the simulation'} runs {' > '.join(callers)}"
            self._endless_round = self._stands_still(runs)
            raise self._endless_round
        return self._now

    def start_process(self, name: str, main: Callable[[], Any]) -> asyncio.Task[Any]:
        """Run a coroutine function as a process; all that it starts belongs to the process."""
        context = copy_context()
        context.run(PROCESS.set, name)
        task: asyncio.Task[Any] = self.create_task(main(), name=name, context=context)
        return task

    def stop_process(self, name: str) -> None:
        """SIGSTOP."""
        self._stopped.setdefault(name, [])
        self._not_running.add(name)

    def continue_process(self, name: str) -> None:
        """SIGCONT."""
        self._ready.extend(self._stopped.pop(name, ()))  # type: ignore[attr-defined]
        if name not in self._killed:
            self._not_running.discard(name)

    def kill_process(self, name: str) -> None:
        """SIGKILL."""
        self._killed[name].extend(self._stopped.pop(name, ()))
        # Keep the tasks: otherwise their coroutines are closed and run their cleanup.
        tasks = (known() for known in self._tasks.pop(name, ()))
        self._killed[name].extend(task for task in tasks if task is not None)
        self._not_running.add(name)

    def end_processes(self) -> None:
        """Continue stopped and killed processes so that they can be cancelled."""
        for handles in self._stopped.values():
            self._ready.extend(handles)  # type: ignore[attr-defined]
        for handles in self._killed.values():
            self._ready.extend(each for each in handles if isinstance(each, asyncio.Handle))  # type: ignore[attr-defined]
        self._stopped.clear()
        self._killed.clear()
        self._not_running.clear()

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> ProcessHandle:
        """Ready a callback."""
        handle = ProcessHandle(callback, args, self, context)
        self._ready.append(handle)  # type: ignore[attr-defined]
        return handle

    def _call_soon(
        self, callback: Callable[..., object], args: Any, context: Context | None
    ) -> ProcessHandle:
        return self.call_soon(callback, *args, context=context)

    def call_later(  # type: ignore[override]
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> ProcessTimer:
        """Set a timer for a delay from now."""
        when = self._now + delay
        timer = ProcessTimer(when, callback, args, self, context)
        self._num_timers += 1
        heappush(self._timers, (when, self._num_timers, timer))
        return timer

    #: Never: handles would remember where they were made. Each future asks; a builtin answers.
    get_debug = staticmethod(bool)

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> ProcessTimer:
        """Set a timer; timers of one instant fire in the order in which they were set."""
        timer = ProcessTimer(when, callback, args, self, context)
        self._num_timers += 1
        heappush(self._timers, (when, self._num_timers, timer))
        return timer

    async def sleep_until(self, when: float) -> None:
        """Sleep until a time of the loop."""
        await asyncio.sleep(when - self._now)

    def call_outside(self, delay_s: float, callback: Callable[..., object], *args: object) -> None:
        """Call a function later on behalf of the simulation, even if the calling process ends."""
        when = self._now + delay_s
        self._num_timers += 1
        timer = ProcessTimer(when, callback, args, self, OUTSIDE)
        heappush(self._timers, (when, self._num_timers, timer))

    def _make_task(
        self, _loop: object, coro: Any, context: Context | None = None, **arguments: Any
    ) -> asyncio.Task[Any]:
        """A task of the calling process, or of the context's process.

        From Python 3.13 on, `arguments` has the name of the task; before, the loop sets it after.
        """
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=self, context=context, **arguments)
        tasks = self._tasks[PROCESS.get() if context is None else context[PROCESS]]
        tasks.append(ref(task))
        if len(tasks) % _TASKS_PER_CLEANUP == 0:
            tasks[:] = [known for known in tasks if known() is not None]
        return task

    def _run_once(self) -> None:
        """Run until `stop`, which ends the loop after the callbacks that are ready with it."""
        ready, not_running = self._ready, self._not_running  # type: ignore[attr-defined]
        while not self._stopping:  # type: ignore[attr-defined]
            if not ready:
                self._jump()
            num_ready = len(ready)
            self._num_steps += num_ready
            if self._num_steps > STEPS_PER_INSTANT:
                named = map(_description, islice(ready, _CALLBACKS_NAMED))
                raise self._stands_still(f"ready are {', '.join(named)}")
            for _ in range(num_ready):
                handle = ready.popleft()
                if handle._cancelled:  # noqa: SLF001 - half a million times in a seed
                    continue
                context = handle._context  # noqa: SLF001
                if not_running and context.get(PROCESS, "") in not_running:
                    self._keep(handle)
                    continue
                try:
                    context.run(handle._callback, *handle._args)  # noqa: SLF001
                except (SystemExit, KeyboardInterrupt):
                    raise
                except BaseException as error:
                    self.call_exception_handler(
                        {"message": f"Exception in callback {handle!r}", "exception": error}
                    )
            if self._endless_round is not None:
                found, self._endless_round = self._endless_round, None
                raise found

    def _stands_still(self, runs: str) -> ClockStandsStill:
        """The finding. The loop can go on after it, so that what runs can be cancelled."""
        num_steps, self._num_steps = self._num_steps, 0
        return ClockStandsStill(
            f"at {self._now:.3f} s, {num_steps} callbacks and readings of the clock without an "
            f"advance of it: {runs}"
        )

    def _keep(self, handle: ProcessHandle) -> None:
        """Keep a callback of a process that does not run."""
        name = handle.process
        (self._killed if name in self._killed else self._stopped)[name].append(handle)

    def _jump(self) -> None:
        """Move the clock to the next timer and ready all that are due."""
        timers, ready = self._timers, self._ready  # type: ignore[attr-defined]
        while timers and timers[0][2]._cancelled:  # noqa: SLF001
            heappop(timers)
        if not timers:
            raise NothingLeftToDo
        if timers[0][0] > self._now:
            self._now = timers[0][0]
            self._num_steps = 0
        now = self._now
        while timers and timers[0][0] <= now:
            handle = heappop(timers)[2]
            if not handle._cancelled:  # noqa: SLF001
                ready.append(handle)

    def remove_signal_handler(self, _sig: int) -> bool:
        """Do nothing: the loop has no signals."""
        return False

    def _timer_handle_cancelled(self, _handle: asyncio.TimerHandle) -> None:
        return

    def _write_to_self(self) -> None:
        return

    def _process_events(self, _events: object) -> None:
        return
