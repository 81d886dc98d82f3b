"""Experiments on Dask: worker processes that die, and a scheduler that goes away."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import dask
import pytest
from distributed import Client, LocalCluster

from stowage.experiments.dask_pool import DaskPool, outcome_at_end
from stowage.experiments.experiment import Outcome, outcome_of
from stowage.experiments.extra import MissingExtra
from stowage.experiments.pool import ClusterVanished, PoolOptions
from stowage.experiments.sweep import SweepOptions, run_sweep
from tests.unit.experiments.experiments import KillsItsWorker, Raising, Tiny

TWO_PROCESSES = SweepOptions(PoolOptions(workers=2))
HERE = SweepOptions(PoolOptions(workers=1))


def test_killed_workers_lose_nothing_and_the_table_is_that_of_one_process(tmp_path: Path) -> None:
    once, always = tmp_path / "once", tmp_path / "always"
    once.mkdir()
    always.mkdir()
    experiments = [
        Tiny(1),
        KillsItsWorker(2, marks=once),
        Raising(3),
        KillsItsWorker(4, marks=always, times=9),
        Tiny(5),
    ]
    # A worker that dies is replaced; the second death of one experiment is its end here.
    with dask.config.set({"distributed.scheduler.allowed-failures": 1}):
        ended = run_sweep(experiments, TWO_PROCESSES)
    assert ended.ended_early is None
    assert (once / "0").exists()
    assert [each.seed for each in ended.results] == [1, 2, 5]
    assert [each.key for each in ended.failures] == ["t/p/3", "t/p/4"]
    assert ended.failures[1].failure is not None
    assert "each worker that ran it died" in ended.failures[1].failure
    alone = run_sweep([Tiny(1), Tiny(2), Raising(3), Tiny(5)], HERE)
    assert ended.results == alone.results
    assert ended.failures[0] == alone.failures[0]


class _LostOnce:
    """A future whose result was on a worker that has died; another worker makes it again."""

    def __init__(self, *, is_scheduler_gone: bool) -> None:
        self.status = "lost"
        self._end = "cancelled" if is_scheduler_gone else "finished"

    def exception(self) -> None:
        self.status = self._end

    def result(self) -> Outcome:
        return outcome_of(Tiny(1))


def test_a_result_that_died_with_its_worker_is_waited_for() -> None:
    future: Any = _LostOnce(is_scheduler_gone=False)
    assert outcome_at_end(future, Tiny(1)) == outcome_of(Tiny(1))
    future = _LostOnce(is_scheduler_gone=True)
    with pytest.raises(ClusterVanished, match="the Dask scheduler is gone"):
        outcome_at_end(future, Tiny(1))


def _existing_cluster() -> Any:
    return LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        processes=False,
        protocol="tcp",
        dashboard_address="127.0.0.1:0",
        worker_dashboard_address="127.0.0.1:0",
    )


def test_a_scheduler_that_vanishes_ends_the_sweep_and_keeps_what_has_ended(tmp_path: Path) -> None:
    experiments = [Tiny(seed) for seed in range(1, 200)]
    results = tmp_path / "results.jsonl"
    with ExitStack() as until_closed, _existing_cluster() as cluster:
        options = SweepOptions(PoolOptions(dask=cluster.scheduler_address), results)

        def close_scheduler(outcome: Outcome) -> None:
            if len(results.read_bytes().splitlines()) == 2:  # the head and the first result
                cluster.sync(cluster.scheduler.close)
                # How long the cluster searches for its scheduler when it is closed itself.
                brief = dask.config.set({"distributed.comm.timeouts.connect": "100ms"})
                until_closed.enter_context(brief)

        ended = run_sweep(experiments, options, close_scheduler)
    assert ended.ended_early == "the Dask scheduler is gone"
    assert 1 <= len(ended.results) < len(experiments)
    resumed = run_sweep(experiments, SweepOptions(PoolOptions(workers=1), results))
    assert resumed.num_kept == len(ended.results)
    assert [each.seed for each in resumed.results] == list(range(1, 200))


def test_an_address_without_a_scheduler_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stowage.experiments.dask_pool.CONNECT_TIMEOUT_S", 0.1)
    ended = run_sweep([Tiny(1)], SweepOptions(PoolOptions(dask="tcp://127.0.0.1:1")))
    assert ended.results == []
    assert (ended.ended_early or "").startswith("no Dask scheduler answers at tcp://127.0.0.1:1")


@pytest.mark.parametrize("address", ["scheduler", "tcp://scheduler", "http://scheduler:8786"])
def test_a_malformed_address_is_refused_before_a_client_is_made(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("stowage.experiments.dask_pool.Client")
    ended = run_sweep([Tiny(1)], SweepOptions(PoolOptions(dask=address)))
    assert (ended.ended_early or "").startswith(f"no Dask scheduler answers at {address}: ")


def test_without_dask_workers_are_refused_and_one_process_is_the_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("stowage.experiments.extra.find_spec", lambda _module: None)
    with pytest.raises(MissingExtra, match=r"--workers 2 needs .* extra simulate"):
        run_sweep([Tiny(1), Tiny(2)], TWO_PROCESSES)
    assert len(run_sweep([Tiny(1), Tiny(2)], SweepOptions()).results) == 2


def test_nobody_without_its_certificates_reaches_the_processes_of_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Dask runs what any client sends; other users of the machine reach the port."""
    started: list[Any] = []

    def start(**options: Any) -> Any:
        started.append(LocalCluster(**options))
        return started[-1]

    monkeypatch.setattr("stowage.experiments.dask_pool.LocalCluster", start)
    with DaskPool(None, 1) as pool:
        assert [each.failure for each in pool.run([Tiny(1)])] == [None]
        address = started[0].scheduler_address
        assert address.startswith("tls://127.0.0.1:")
        with pytest.raises(OSError, match=r"[Tt]imed out|reset|closed"):
            Client(address.replace("tls:", "tcp:"), timeout=0.3, set_as_default=False)
        with pytest.raises(TypeError, match="TLS"):
            Client(address, timeout=0.3, set_as_default=False)
