"""Opens the pool that options ask for."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager, nullcontext

from stowage.experiments.extra import import_extra, is_installed
from stowage.experiments.pool import CallingProcess, GrowingPool, Pool, PoolOptions
from stowage.experiments.usable_cores import usable_cores


def open_pool(options: PoolOptions, num_experiments: int) -> AbstractContextManager[Pool]:
    """A pool, which is closed at the end of the ``with`` statement.

    Args:
        options: Where experiments run.
        num_experiments: Most that run at a time; no more processes are started.

    Raises:
        MissingExtra: Dask is needed and not installed.
        ClusterVanished: No scheduler answers at the address.
    """
    address, workers = options.dask, options.workers
    if address is None and workers is None:
        workers = usable_cores() if is_installed("distributed") else 1
    num_workers = min(workers or 1, num_experiments)
    if address is None and num_workers == 1:
        return nullcontext(CallingProcess())
    if address is None and options.workers is None:
        return GrowingPool(lambda: _dask_pool(None, num_workers))
    return _dask_pool(address, num_workers)


def _dask_pool(address: str | None, num_workers: int) -> AbstractContextManager[Pool]:
    import_extra("distributed", f"--workers {num_workers}" if address is None else "--dask")
    # Imported late: Dask is slow to import, and one process does not need it.
    from stowage.experiments.dask_pool import DaskPool  # noqa: PLC0415

    _silence_dask()
    return DaskPool(address, num_workers)


def _silence_dask() -> None:
    """Dask logs each lost connection; what matters is in the outcome or in an exception."""
    for name in tuple(logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("distributed", "tornado"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
