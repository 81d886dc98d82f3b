"""The entry point of a process that schedules."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
import uvloop
import yaml
from structlog.testing import capture_logs

from stowage.operator import app
from stowage.operator.app import run_blocking
from stowage.operator.run_options import EngineDependencies, RunOptions


class _EndedError(Exception):
    """Ends a process before it sends a request."""


def _run(folder: Path, engine_factory: Callable[[EngineDependencies], NoReturn]) -> None:
    path = folder / "kubeconfig"
    config = {
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
        "users": [{"name": "u", "user": {}}],
    }
    path.write_text(yaml.safe_dump(config))
    options = RunOptions(
        engine_factory=engine_factory,
        scheduler_names=("stowage",),
        kubeconfig=str(path),
        owns_process=False,
    )
    with pytest.raises(_EndedError):
        run_blocking(options)


def test_the_event_loop_is_uvloops_and_logs_what_no_task_handles(tmp_path: Path) -> None:
    lost = OSError("connection lost")

    def engine_factory(_parts: EngineDependencies) -> NoReturn:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, uvloop.Loop)
        loop.call_exception_handler({"message": "Fatal write error", "exception": lost})
        loop.call_exception_handler({"message": "Task was destroyed"})
        loop.call_exception_handler({"message": "closing of generator", "asyncgen": object()})
        raise _EndedError

    with capture_logs() as logs:
        _run(tmp_path, engine_factory)
    assert logs == [
        {
            "event": "event loop",
            "log_level": level,
            "problem": problem,
            "exc_info": exception,
        }
        for level, problem, exception in (
            ("error", "Fatal write error", lost),
            ("error", "Task was destroyed", None),
            ("debug", "closing of generator", None),
        )
    ]


def test_the_engine_gets_the_clock_and_draws_of_the_process(tmp_path: Path) -> None:
    def engine_factory(parts: EngineDependencies) -> NoReturn:
        before_s = time.time()
        assert before_s <= parts.wall_clock() <= time.time()
        started_s = parts.timer()
        assert started_s <= parts.timer() <= started_s + 60.0
        assert {parts.choose(3) for _ in range(200)} == {0, 1, 2}
        assert parts.observer is not None
        assert parts.trace_cycle is None
        assert parts.journal is None
        raise _EndedError

    _run(tmp_path, engine_factory)


def test_a_process_of_its_own_writes_its_last_log_lines_and_exits_with_the_status(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps: list[object] = []

    async def run(_options: RunOptions) -> int:
        steps.append("run")
        return 3

    monkeypatch.setattr(app, "make_room", lambda: steps.append("make room for files"))
    monkeypatch.setattr(app, "run", run)
    monkeypatch.setattr(app, "flush_logs", lambda: steps.append("flush logs"))
    monkeypatch.setattr(os, "_exit", steps.append)
    run_blocking(RunOptions(engine_factory=_no_engine, scheduler_names=("stowage",)))
    assert steps == ["make room for files", "run", "flush logs", 3]


def _no_engine(_parts: EngineDependencies) -> NoReturn:
    raise _EndedError
