"""The scheduler has room for all its connections, or does not start."""

from __future__ import annotations

import resource

import pytest

from stowage.api.reflected_kinds import POD_GROUP_SOURCES, REFLECTED_KINDS
from stowage.operator import dispatcher
from stowage.operator.extenders import dispatcher as extenders
from stowage.operator.file_descriptors import NEEDED, make_room
from stowage.operator.serving.connection_limits import MAX_CONNECTIONS
from stowage.operator.writers import event_recorder, pod_group_status, pod_status


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The soft and the hard limit; the last one is in force."""
    found = [(0, 0)]
    monkeypatch.setattr(resource, "getrlimit", lambda _which: found[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _which, both: found.append(both))
    return found


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((1024, 4096), (4096, 4096)),
        ((48, NEEDED), (NEEDED, NEEDED)),
        ((4096, 4096), (4096, 4096)),
        ((48, resource.RLIM_INFINITY), (NEEDED, resource.RLIM_INFINITY)),
        ((resource.RLIM_INFINITY,) * 2, (resource.RLIM_INFINITY,) * 2),
    ],
)
def test_the_limit_is_raised_as_far_as_it_may_be(
    limits: list[tuple[int, int]], before: tuple[int, int], after: tuple[int, int]
) -> None:
    limits.append(before)
    make_room()
    assert limits[-1] == after


def test_the_need_is_enough_where_the_kernel_allows_less_than_the_hard_limit(
    limits: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def set_limit(_which: int, both: tuple[int, int]) -> None:
        if both[0] > 10240:
            raise ValueError("current limit exceeds maximum limit")
        limits.append(both)

    monkeypatch.setattr(resource, "setrlimit", set_limit)
    limits.append((256, 1_048_576))
    make_room()
    assert limits[-1] == (NEEDED, 1_048_576)


def test_a_hard_limit_below_the_need_is_refused_with_both_numbers(
    limits: list[tuple[int, int]],
) -> None:
    limits.append((48, 48))
    with pytest.raises(
        OSError, match=rf"the limit on open files is 48 \(expected at least {NEEDED}"
    ):
        make_room()
    assert limits[-1] == (48, 48)


def test_the_need_covers_every_connection_that_there_may_be_at_once() -> None:
    writes = (
        dispatcher.MAX_BINDINGS_IN_FLIGHT,
        dispatcher.MAX_PRE_BINDS_IN_FLIGHT,
        dispatcher.MAX_VOLUME_WRITES_IN_FLIGHT,
        dispatcher.MAX_CLAIM_WRITES_IN_FLIGHT,
        dispatcher.MAX_CLAIM_RELEASES_IN_FLIGHT,
        dispatcher.MAX_READS_IN_FLIGHT,
        dispatcher.MAX_EVICTIONS_IN_FLIGHT,
        extenders.MAX_BINDINGS_IN_FLIGHT,
        event_recorder.WIDTH,
        pod_group_status.WIDTH,
        pod_status.WIDTH,
    )
    watches = len(REFLECTED_KINDS) + len(POD_GROUP_SOURCES) + 2
    assert sum(writes) + watches + MAX_CONNECTIONS < NEEDED
