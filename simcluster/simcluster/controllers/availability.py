"""Which ready pods have been ready for long enough."""

from collections.abc import Iterable

from simcluster.clock import parse_timestamp
from simcluster.controllers.ownership import is_terminating, ready_since
from simcluster.store.store import Stored


def available_in(pod: Stored, min_ready_s: float, now: float) -> float | None:
    """Seconds until a ready pod counts as available; ``None`` if it is not ready."""
    since = ready_since(pod)
    if since is None or is_terminating(pod):
        return None
    if not min_ready_s or not since:
        return 0.0
    return parse_timestamp(since) + min_ready_s - now


def count_available(
    pods: Iterable[Stored], min_ready_s: float, now: float
) -> tuple[int, float | None]:
    """How many pods are available, and in how many seconds the next one will be."""
    available, waits = 0, []
    for pod in pods:
        wait_s = available_in(pod, min_ready_s, now)
        if wait_s is None:
            continue
        if wait_s <= 0:
            available += 1
        else:
            waits.append(wait_s)
    return available, min(waits, default=None)
