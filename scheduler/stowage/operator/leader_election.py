"""Leader election: one of several replicas holds the Lease and schedules.

The rules are client-go's (``leaderelection.go``): a candidate takes a lease whose holder has not
renewed it for `lease_duration_s` of the candidate's own clock; a leader that cannot renew for
`renew_deadline_s` steps down. No server clock is ever compared. The differences from client-go:

- `may_write` is checked before each write, so that a process that was stopped does not write after
  its lease has expired.
- A candidate checks the Lease more often, and exactly when it expires, so that another replica
  replaces a dead leader within the lease duration plus one retry period.
- A Lease of an older version than was seen before shows that the API server was set back to an
  earlier state. It is not written, so that all replicas see it before it expires.
- A Lease that was deleted, emptied or shortened by hand is taken only after its holder would have
  lost it, because the holder does not know about the change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import structlog

from stowage.operator.client.api_client import LOST_ANSWER_ERRORS, ApiClient
from stowage.operator.client.api_error import ApiError
from stowage.operator.client.outage_log import REPEAT_AFTER_S, plain_message
from stowage.operator.clock import Clock
from stowage.operator.lease import (
    RELEASED_DURATION_S,
    LeaderElectionOptions,
    LeaseClient,
    held_spec,
    version_of,
)
from stowage.operator.writers.object_events import ObjectEventRecorder

log = structlog.get_logger("stowage.operator.leader_election")

CANDIDATE_PAUSE = (0.5, 0.75)
"""Shortest and longest pause of a candidate between two checks, as a share of the retry period.
client-go waits for 1 to 2.2 retry periods."""
FAILED_RENEWAL_PAUSE = 0.25
"""Pause of a leader after a failed renewal, as a share of the retry period."""
WATCHDOG_TOLERANCE_S = 20.0
EVENT_GRACE_S = 1.0
"""How long the end of the process waits for the Event that this replica stopped leading."""


OnRecovery = Callable[[float | None], None]
"""Called when the API server answers again, with the monotonic time since when requests timed out;
None if it refused them or could not be reached."""


class ElectionObservers(msgspec.Struct, frozen=True):
    """Who is told what the reads of the Lease show; no other request is as frequent.

    Attributes:
        on_recovery: Called when the Lease can be read again after failures: the first sign that
            the API server is back.
        on_restored: Called when the Lease is older than it was seen before: the API server was set
            back to an earlier state.
    """

    on_recovery: OnRecovery = lambda _unresponsive_since: None
    on_restored: Callable[[], None] = lambda: None


NO_OBSERVERS = ElectionObservers()


class LeaderElector:
    """Takes part in the leader election.

    Args:
        client: Client of the API server.
        options: Options of the leader election.
        clock: Time, sleep and jitter.
        observers: Who is told of a recovery of the API server, and of its restore from a backup.
        events: Writes Events on the Lease; None writes none.
    """

    def __init__(
        self,
        client: ApiClient,
        options: LeaderElectionOptions,
        clock: Clock,
        observers: ElectionObservers = NO_OBSERVERS,
        events: ObjectEventRecorder | None = None,
    ) -> None:
        self._events = events
        self._observers = observers
        self._has_failed = False
        self._failure_logged_at = -REPEAT_AFTER_S
        self._unresponsive_since: float | None = None
        self._leases = LeaseClient(client, options)
        self._options = options
        self._clock = clock
        self._lease: dict[str, Any] = {}
        self._observed_record: object = None
        self._observed_at = 0.0
        self._held_by_other_until = 0.0
        self._renewed_at: float | None = None
        self._has_released = False
        self._is_restored = False
        self._first_attempt = asyncio.Event()
        # A concurrent renewal must not undo a release, nor make it fail with a conflict.
        self._turn = asyncio.Lock()

    @property
    def lease_name(self) -> str:
        """Name of the Lease."""
        return self._options.lease_name

    @property
    def lease_version(self) -> int:
        """The resource version of the Lease as last read or written; 0 before."""
        return version_of(self._lease)

    @property
    def has_run_out(self) -> bool:
        """Whether this replica was the leader and its lease has expired."""
        return self._renewed_at is not None and not self._holds_lease()

    @property
    def is_healthy(self) -> bool:
        """False for a leader that has not stepped down long after its lease expired.

        upstream: ``LeaderElector.Check`` with the 20 s of kube-scheduler's watchdog. A process
        whose event loop hangs cannot step down; the failing health check restarts it.
        """
        if self._renewed_at is None:
            return True
        limit = self._options.lease_duration_s + WATCHDOG_TOLERANCE_S
        return self._clock.monotonic() < self._renewed_at + limit

    def may_write(self) -> bool:
        """Whether this replica holds the lease at this moment."""
        return self._holds_lease() and not (self._has_released or self._is_restored)

    async def acquire(self) -> None:
        """Return when this replica holds the lease."""
        log.info("waiting for the lease", lease=self._options.lease_name)
        while not await self._attempt():
            await self._clock.sleep(self._candidate_pause_s())
        log.info("became leader", identity=self._options.identity)
        self._record_event("became leader")

    async def after_first_attempt(self, job: Callable[[], Awaitable[None]]) -> None:
        """Run a job once the first attempt of `acquire` is over.

        So a replica that becomes the leader at its start does not list twice.
        """
        await self._first_attempt.wait()
        await job()

    async def _attempt(self) -> bool:
        is_acquired = await self.try_acquire_or_renew()
        self._first_attempt.set()
        return is_acquired

    async def renew(self) -> None:
        """Renew the lease; returns when it is lost."""
        pause_s = self._options.retry_period_s
        while self.may_write():
            await self._clock.sleep(pause_s)
            # After a sleep past the deadline the leader ends, even if no other replica has taken
            # the lease: the state of the process may be as old as the sleep was long.
            if self.may_write():
                is_renewed = await self.try_acquire_or_renew()
                factor = 1.0 if is_renewed else FAILED_RENEWAL_PAUSE
                pause_s = self._options.retry_period_s * factor
        if not self._has_released:
            log.error("lost the lease", identity=self._options.identity)
            self._record_event("stopped leading")

    async def release(self, num_unknown_outcomes: int = 0) -> None:
        """Release the lease, so that another replica can take it at once; no write may follow.

        Args:
            num_unknown_outcomes: Number of writes that may still be on their way. If there are any,
                the lease is left to expire: the next leader must not decide before they arrive.
        """
        self._has_released = True
        async with self._turn:
            await self._release(num_unknown_outcomes)
        if self._events is not None:
            await self._events.close(EVENT_GRACE_S)

    def _candidate_pause_s(self) -> float:
        shortest, longest = (share * self._options.retry_period_s for share in CANDIDATE_PAUSE)
        pause = shortest + (longest - shortest) * self._clock.jitter()
        left = self._held_by_other_until - self._clock.monotonic()
        return min(pause, left) if left > 0 else pause

    def _holds_lease(self) -> bool:
        if self._renewed_at is None:
            return False
        return self._clock.monotonic() < self._renewed_at + self._options.renew_deadline_s

    async def _release(self, num_unknown_outcomes: int) -> None:
        if not self._holds_lease() or self._is_restored:
            return
        self._renewed_at = None
        if num_unknown_outcomes:
            reason = f"{num_unknown_outcomes} writes may still be on their way"
            log.warning("lease not released", error=reason)
        else:
            try:
                await self._leases.release(self._lease, self._clock.timestamp_micro())
            except (ApiError, *LOST_ANSWER_ERRORS) as error:
                log.warning("lease not released", error=plain_message(error))
        self._record_event("stopped leading")

    def _record_event(self, what: str) -> None:
        """Write client-go's Event on the Lease: ``LeaderElection``, with the identity."""
        if self._events is not None:
            uid = self._lease.get("metadata", {}).get("uid", "")
            note = f"{self._options.identity} {what}"
            self._events.record(uid, reason="LeaderElection", note=note)

    async def try_acquire_or_renew(self) -> bool:
        """One attempt; returns whether it acquired or renewed the lease."""
        async with self._turn:
            return not self._has_released and await self._try_in_time()

    async def _try_in_time(self) -> bool:
        # The lease counts from before the request, because the answer may take long to arrive.
        started_at = self._clock.monotonic()
        try:
            async with asyncio.timeout(self._time_left_s()):
                is_acquired = await self._try_once()
        except (ApiError, *LOST_ANSWER_ERRORS, msgspec.DecodeError) as error:
            self._log_failure(error)
            self._note_failure(started_at, error)
            return False
        self._note_answer()
        # An expired lease stays lost, even if the answer of a renewal arrives: the process has
        # already refused writes that nothing repeats.
        if self.has_run_out:
            return False
        self._renewed_at = started_at if is_acquired else None
        return is_acquired

    def _log_failure(self, error: Exception) -> None:
        """Log a failed attempt, at most one a minute at level warning."""
        now = self._clock.monotonic()
        is_repeated = now - self._failure_logged_at < REPEAT_AFTER_S
        if not is_repeated:
            self._failure_logged_at = now
        write = log.debug if is_repeated else log.warning
        write("lease not renewed", error=plain_message(error))

    def _note_failure(self, started_at: float, error: Exception) -> None:
        if isinstance(error, ApiError) and error.status == 409:
            return
        self._has_failed = True
        if isinstance(error, TimeoutError) and self._unresponsive_since is None:
            self._unresponsive_since = started_at

    def _note_answer(self) -> None:
        if self._has_failed:
            unresponsive_since, self._unresponsive_since = self._unresponsive_since, None
            self._has_failed = False
            self._observers.on_recovery(unresponsive_since)

    def _time_left_s(self) -> float:
        """Time limit of an attempt; for a leader, the time until its lease expires."""
        if self._renewed_at is None:
            return self._options.renew_deadline_s
        return self._renewed_at + self._options.renew_deadline_s - self._clock.monotonic()

    async def _try_once(self) -> bool:
        lease = await self._read()
        if lease is None:
            if self._clock.monotonic() < self._held_by_other_until:
                return False
            self._observe(await self._leases.create(self._held_spec({})))
            return True
        self._observe(lease)
        if self._is_restored or self._is_held_by_another(lease):
            return False
        self._observe(await self._leases.update(lease, self._held_spec(lease["spec"])))
        return True

    async def _read(self) -> dict[str, Any] | None:
        """The Lease; one that is older than it was seen before is read again.

        A proxy may answer once from the past, and this process would end for nothing.
        """
        lease = await self._leases.get()
        is_older = lease is not None and 0 < version_of(lease) < self.lease_version
        return await self._leases.get() if is_older else lease

    def _held_spec(self, previous: dict[str, Any]) -> dict[str, Any]:
        return held_spec(previous, self._options, self._clock.timestamp_micro())

    def _observe(self, lease: dict[str, Any]) -> None:
        """Store the Lease, and when its spec last changed by this replica's clock."""
        if lease["spec"] != self._observed_record:
            self._observed_record = lease["spec"]
            self._observed_at = self._clock.monotonic()
        newest, self._lease = self.lease_version, lease
        if 0 < self.lease_version < newest:
            self._is_restored = True
            self._observers.on_restored()

    def _is_held_by_another(self, lease: dict[str, Any]) -> bool:
        spec = lease["spec"]
        holder = spec.get("holderIdentity") or ""
        if holder == self._options.identity:
            return False
        if holder:
            self._held_by_other_until = self._taken_until()
        elif spec.get("leaseDurationSeconds") == RELEASED_DURATION_S:
            # Its holder has released it; it was not emptied by hand.
            self._held_by_other_until = 0.0
        return self._clock.monotonic() < self._held_by_other_until

    def _taken_until(self) -> float:
        """When the observed lease expires by this replica's clock if it is not renewed."""
        duration = self._lease["spec"].get("leaseDurationSeconds") or 0
        return self._observed_at + max(float(duration), self._options.lease_duration_s)
