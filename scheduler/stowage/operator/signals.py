"""Signal handlers of the process."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
from collections.abc import Callable

EXIT_FAILED = 1
"""Exit status after a failure or a lost lease, as kube-scheduler's."""

STOPPED_TOO_LONG = b'{"event":"stopped for longer than the lease lasts","level":"error"}\n'


class SignalHandlers:
    """Handles SIGTERM, SIGINT, SIGUSR2 and SIGCONT.

    Args:
        stop: SIGTERM and SIGINT set it.
        check_state: SIGUSR2 calls it.
        has_lease_expired: SIGCONT calls it; if it returns true, the process exits.
        owns_process: False removes the handlers of SIGTERM and SIGINT, which Kopf has installed,
            and installs none.
    """

    def __init__(
        self,
        stop: asyncio.Event,
        check_state: Callable[[], None],
        has_lease_expired: Callable[[], bool],
        *,
        owns_process: bool,
    ) -> None:
        self._stop = stop
        self._check_state = check_state
        self._has_lease_expired = has_lease_expired
        self._owns_process = owns_process

    def install(self) -> None:
        """Install the handlers; called again after each start of Kopf, which replaces them."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            if self._owns_process:
                loop.add_signal_handler(number, self._stop.set)
            else:
                loop.remove_signal_handler(number)
        if self._owns_process:
            loop.add_signal_handler(signal.SIGUSR2, self._check_state)
            # Not a handler of the loop: the loop would run it after requests that are ready.
            signal.signal(signal.SIGCONT, self._exit_if_lease_expired)

    def _exit_if_lease_expired(self, _number: int, _frame: object) -> None:
        """Exit at once if the lease has expired while the process was stopped.

        Python runs this handler before the next instruction, so that no request that passed the
        check of the lease before the stop is sent after it.
        """
        if self._has_lease_expired():
            try:
                # The interrupted code may hold the lock of the log sink, so write to stderr itself.
                if select.select([], [sys.stderr], [], 0)[1]:
                    os.write(sys.stderr.fileno(), STOPPED_TOO_LONG)
            finally:
                os._exit(EXIT_FAILED)
