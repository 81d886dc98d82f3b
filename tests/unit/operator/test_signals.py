"""Signals stop the process, check its state, and end it if its lease expired while it stood."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator

import pytest

from stowage.operator.signals import EXIT_FAILED, STOPPED_TOO_LONG, SignalHandlers


class _Ended(Exception):  # noqa: N818 - it names what happened
    """The process would have ended here."""


class _Process:
    """The handlers of a process, and what they have done."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, owns_process: bool = True) -> None:
        self.stop = asyncio.Event()
        self.num_checks = 0
        self.has_expired = False
        self.handlers: dict[int, Callable[[], None] | None] = {}
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "add_signal_handler", self.handlers.__setitem__)
        monkeypatch.setattr(
            loop, "remove_signal_handler", lambda number: self.handlers.update({number: None})
        )
        SignalHandlers(
            self.stop, self._check, lambda: self.has_expired, owns_process=owns_process
        ).install()

    def send(self, number: int) -> None:
        """Run the handler of a signal."""
        handler = self.handlers[number]
        assert handler is not None
        handler()

    def _check(self) -> None:
        self.num_checks += 1


@pytest.fixture(autouse=True)
def continued() -> Iterator[None]:
    """SIGCONT has its own handler again after the test."""
    before = signal.getsignal(signal.SIGCONT)
    yield
    signal.signal(signal.SIGCONT, before)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_the_process_is_asked_to_stop(
    monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    process = _Process(monkeypatch)
    process.send(number)
    assert process.stop.is_set()


async def test_the_state_is_checked_each_time_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    process = _Process(monkeypatch)
    process.send(signal.SIGUSR2)
    process.send(signal.SIGUSR2)
    assert process.num_checks == 2
    assert not process.stop.is_set()


async def test_in_the_process_of_another_the_handlers_of_kopf_are_removed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = signal.getsignal(signal.SIGCONT)
    process = _Process(monkeypatch, owns_process=False)
    assert process.handlers == {signal.SIGTERM: None, signal.SIGINT: None}
    assert signal.getsignal(signal.SIGCONT) == before


async def test_a_process_that_stood_ends_at_once_if_its_lease_has_expired(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def end(status: int) -> None:
        raise _Ended(status)

    monkeypatch.setattr(os, "_exit", end)
    process = _Process(monkeypatch)
    signal.raise_signal(signal.SIGCONT)
    assert capfd.readouterr().err == ""
    process.has_expired = True
    with pytest.raises(_Ended) as ended:
        signal.raise_signal(signal.SIGCONT)
    assert ended.value.args == (EXIT_FAILED,)
    assert capfd.readouterr().err == STOPPED_TOO_LONG.decode()
