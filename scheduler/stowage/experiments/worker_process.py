"""Set up by Dask in each worker process on this machine, before its first experiment."""

from __future__ import annotations

import signal


def dask_setup(_worker: object) -> None:
    """Ignore Ctrl-C, which a terminal sends to every process: the sweep itself ends its workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
