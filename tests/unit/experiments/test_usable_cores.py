"""How many processes run experiments at a time."""

from __future__ import annotations

import os
import sys

import pytest

from stowage.experiments.usable_cores import usable_cores


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux confines a process to cores")
def test_cores_that_the_process_may_not_use_do_not_count() -> None:
    assert sys.platform == "linux"
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        assert usable_cores() == 1
    finally:
        os.sched_setaffinity(0, allowed)


def test_every_core_counts_where_the_system_does_not_say_which_may_be_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert usable_cores() == 8
