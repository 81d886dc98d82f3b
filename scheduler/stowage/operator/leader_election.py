"""One of several replicas schedules: leader election by a coordination.k8s.io/v1 Lease.

The rules are client-go's (``leaderelection.go``): a candidate takes a lease whose holder has not
renewed it for `lease_duration_s` of the candidate's own clock; a leader that could not renew for
`renew_deadline_s` steps down. Unlike there, `may_write` is asked before each write, so a process
that was stopped for a while notices before it does harm, and a candidate looks more often than once
in a retry period and at the very moment the lease runs out: a leader that dies is replaced within a
lease and a retry period. A Lease that somebody deleted, emptied or shortened by hand is not taken
before its holder would have lost it, for the holder does not know yet. No server clock is ever
compared.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import aiohttp
import msgspec
import structlog

from stowage.operator.client.api_client import LOST_ANSWER_ERRORS, ApiClient
from stowage.operator.client.api_error import ApiError
from stowage.operator.client.backoff import Jitter, Sleep
from stowage.operator.client.resource_version import parse_resource_version

log = structlog.get_logger("stowage.operator.leader_election")

CANDIDATE_PAUSE = (0.5, 0.75)
"""Of a retry period: the shortest and the longest a candidate waits between two looks. client-go
waits for 1 to 2.2 periods, and then notices a renewal, and that the lease has run out, so late."""
HASTE = 0.25
"""Of a retry period: how soon a leader tries again after a renewal that failed. One whose answer
never came leaves no time to lose."""
RELEASED_DURATION_S = 1
"""The duration of a lease that its holder let go, as client-go writes it."""
WATCHDOG_TOLERANCE_S = 20.0


class _Name(msgspec.Struct, frozen=True):
    name: str


class _LeaseSpec(msgspec.Struct, frozen=True, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    lease_transitions: int | None = None


class _LeaseShape(msgspec.Struct, frozen=True):
    """What a lease must be like to be worked with."""

    metadata: _Name
    spec: _LeaseSpec | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class LeaderElectionOptions:
    """Which lease, and how fast it changes hands.

    Attributes:
        lease_name: Of the Lease.
        lease_namespace: Of the Lease.
        identity: Who we are; unique among the replicas.
        lease_duration_s: How long others wait for a leader that does not renew.
        renew_deadline_s: How long a leader tries to renew before it steps down.
        retry_period_s: Between tries.
    """

    identity: str
    lease_name: str = "stowage"
    lease_namespace: str = "kube-system"
    lease_duration_s: float = 15.0
    renew_deadline_s: float = 10.0
    retry_period_s: float = 2.0

    def __post_init__(self) -> None:
        if not self.lease_duration_s > self.renew_deadline_s > self.retry_period_s > 0:
            raise ValueError(
                "leaderElection: expected leaseDuration > renewDeadline > retryPeriod > 0, got "
                f"{self.lease_duration_s} s, {self.renew_deadline_s} s, {self.retry_period_s} s"
            )


class ElectionClock(msgspec.Struct, frozen=True):
    """The times an election needs.

    Attributes:
        monotonic: Seconds that never jump.
        timestamp: The present time with microseconds, for people who read the Lease.
        sleep: Sleeps for a number of seconds.
        jitter: Returns random numbers in 0..1.
    """

    monotonic: Callable[[], float]
    timestamp: Callable[[], str]
    sleep: Sleep
    jitter: Jitter


OnRecovery = Callable[[float | None], None]
"""Told that the server answers again; since when, monotonic, it was silent, or None if it was
refusing all the time, or could not be reached."""


class LeaderElector:
    """Takes part in an election.

    Args:
        client: Client of the API server.
        options: Which lease.
        clock: What time it is.
        on_return: Called when the lease could be read again: nothing else is asked for so often, so
            nobody knows earlier.
    """

    def __init__(
        self,
        client: ApiClient,
        options: LeaderElectionOptions,
        clock: ElectionClock,
        on_return: OnRecovery = lambda _silent_since: None,
    ) -> None:
        self._on_return = on_return
        self._is_in_trouble = False
        self._silent_since: float | None = None
        self._client = client
        self._options = options
        self._clock = clock
        self._collection = (
            f"/apis/coordination.k8s.io/v1/namespaces/{options.lease_namespace}/leases"
        )
        self._path = f"{self._collection}/{options.lease_name}"
        self._timeout = _exactly(options.renew_deadline_s / 2)
        self._lease: dict[str, Any] = {}
        self._observed_record: object = None
        self._observed_at = 0.0
        self._believed_until = 0.0
        self._renewed_at: float | None = None
        self._has_released = False
        # A renewal under way must not undo a release, nor make it fail with a conflict.
        self._turn = asyncio.Lock()

    @property
    def lease_name(self) -> str:
        """Of the Lease."""
        return self._options.lease_name

    @property
    def lease_version(self) -> int:
        """The resource version of the Lease as last read or written; 0 before."""
        return parse_resource_version(self._lease.get("metadata", {}).get("resourceVersion", ""))

    @property
    def has_run_out(self) -> bool:
        """Whether we led and did not renew in time, perhaps without having noticed yet."""
        return self._renewed_at is not None and not self._holds_lease()

    @property
    def is_healthy(self) -> bool:
        """False for a leader that has not renewed for long after its lease ran out.

        upstream: ``LeaderElector.Check`` with the 20 s of kube-scheduler's watchdog. A process
        whose loop is stuck cannot step down; failing its health check has it restarted.
        """
        if self._renewed_at is None:
            return True
        limit = self._options.lease_duration_s + WATCHDOG_TOLERANCE_S
        return self._clock.monotonic() < self._renewed_at + limit

    def may_write(self) -> bool:
        """Whether the lease is ours at this very moment."""
        return self._holds_lease() and not self._has_released

    async def acquire(self) -> None:
        """Wait until the lease is ours."""
        log.info("waiting for the lease", lease=self._options.lease_name)
        while not await self.try_acquire_or_renew():
            await self._clock.sleep(self._candidate_pause_s())
        log.info("became leader", identity=self._options.identity)

    async def renew(self) -> None:
        """Keep the lease; returns when it is lost."""
        pause_s = self._options.retry_period_s
        while self.may_write():
            await self._clock.sleep(pause_s)
            # Who slept past the deadline starts anew, even if nobody has taken the lease: what
            # this process holds in its hands may be as old as its sleep was long.
            if self.may_write():
                is_renewed = await self.try_acquire_or_renew()
                pause_s = self._options.retry_period_s * (1.0 if is_renewed else HASTE)
        if not self._has_released:
            log.error("lost the lease", identity=self._options.identity)

    async def release(self) -> None:
        """Let the others have the lease at once; nothing may be written from now on."""
        self._has_released = True
        async with self._turn:
            await self._release()

    def _candidate_pause_s(self) -> float:
        shortest, longest = (share * self._options.retry_period_s for share in CANDIDATE_PAUSE)
        pause = shortest + (longest - shortest) * self._clock.jitter()
        left = self._believed_until - self._clock.monotonic()
        return min(pause, left) if left > 0 else pause

    def _holds_lease(self) -> bool:
        if self._renewed_at is None:
            return False
        return self._clock.monotonic() < self._renewed_at + self._options.renew_deadline_s

    async def _release(self) -> None:
        if not self._holds_lease():
            return
        spec = {**self._lease.get("spec", {}), "holderIdentity": ""}
        spec["leaseDurationSeconds"] = RELEASED_DURATION_S
        spec["renewTime"] = self._clock.timestamp()
        self._renewed_at = None
        try:
            body = msgspec.json.encode({**self._lease, "spec": spec})
            # Not for longer: who cannot be told soon will see for themselves.
            timeout = _exactly(self._options.retry_period_s)
            await self._client.put(self._path, body, timeout)
        except (ApiError, *LOST_ANSWER_ERRORS) as error:
            log.warning("lease not released", error=repr(error))

    async def try_acquire_or_renew(self) -> bool:
        """One round; whether the lease was taken or renewed in it."""
        async with self._turn:
            return not self._has_released and await self._try_in_time()

    async def _try_in_time(self) -> bool:
        # The lease counts from before the request: the answer may have been long on its way.
        started_at = self._clock.monotonic()
        try:
            async with asyncio.timeout(self._time_left_s()):
                is_ours = await self._try_once()
        except (ApiError, *LOST_ANSWER_ERRORS, msgspec.DecodeError) as error:
            log.warning("lease not renewed", error=str(error) or repr(error))
            self._note_trouble(started_at, error)
            return False
        self._note_answer()
        # A lease that ran out stays lost, even if an answer comes that renews it: meanwhile pods
        # were turned away that nobody would come back to.
        if self.has_run_out:
            return False
        self._renewed_at = started_at if is_ours else None
        return is_ours

    def _note_trouble(self, started_at: float, error: Exception) -> None:
        if isinstance(error, ApiError) and error.status == 409:
            return
        self._is_in_trouble = True
        if isinstance(error, TimeoutError) and self._silent_since is None:
            self._silent_since = started_at

    def _note_answer(self) -> None:
        if self._is_in_trouble:
            unresponsive_since, self._silent_since = self._silent_since, None
            self._is_in_trouble = False
            self._on_return(unresponsive_since)

    def _time_left_s(self) -> float:
        """How long a round may take: as a leader, until the lease runs out."""
        if self._renewed_at is None:
            return self._options.renew_deadline_s
        return self._renewed_at + self._options.renew_deadline_s - self._clock.monotonic()

    async def _try_once(self) -> bool:
        try:
            lease = self._decoded(await self._client.get(self._path, None, self._timeout))
        except ApiError as error:
            if error.status != 404:
                raise
            if self._clock.monotonic() < self._believed_until:
                return False
            await self._create()
            return True
        self._observe(lease)
        if self._is_held_by_another(lease):
            return False
        body = msgspec.json.encode({**lease, "spec": self._spec(lease["spec"])})
        # The lease's resourceVersion is in the body: whoever writes first wins, the other gets 409.
        self._observe(self._decoded(await self._client.put(self._path, body, self._timeout)))
        return True

    async def _create(self) -> None:
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": self._options.lease_name,
                "namespace": self._options.lease_namespace,
            },
            "spec": self._spec({}),
        }
        answer = await self._client.post(self._collection, msgspec.json.encode(body), self._timeout)
        self._observe(self._decoded(answer))

    def _decoded(self, body: bytes) -> dict[str, Any]:
        """The lease, with a spec even if somebody has taken it away.

        Raises:
            msgspec.DecodeError: it is something else.
        """
        found = msgspec.json.decode(body, type=_LeaseShape)
        if found.metadata.name != self._options.lease_name:
            raise msgspec.ValidationError(f"not the lease, but {found.metadata.name!r}")
        lease: dict[str, Any] = msgspec.json.decode(body)
        return {**lease, "spec": lease.get("spec") or {}}

    def _observe(self, lease: dict[str, Any]) -> None:
        """Note when, by our own clock, the record last changed."""
        if lease["spec"] != self._observed_record:
            self._observed_record = lease["spec"]
            self._observed_at = self._clock.monotonic()
        self._lease = lease

    def _is_held_by_another(self, lease: dict[str, Any]) -> bool:
        spec = lease["spec"]
        holder = spec.get("holderIdentity") or ""
        if holder == self._options.identity:
            return False
        if holder:
            self._believed_until = self._taken_until()
        elif spec.get("leaseDurationSeconds") == RELEASED_DURATION_S:
            # Let go by its holder, not emptied by hand.
            self._believed_until = 0.0
        return self._clock.monotonic() < self._believed_until

    def _taken_until(self) -> float:
        """When the lease last seen runs out, by our own clock, unless its holder renews it."""
        duration = self._lease["spec"].get("leaseDurationSeconds") or 0
        return self._observed_at + max(float(duration), self._options.lease_duration_s)

    def _spec(self, previous: dict[str, Any]) -> dict[str, Any]:
        now = self._clock.timestamp()
        transitions = previous.get("leaseTransitions") or 0
        is_ours = previous.get("holderIdentity") == self._options.identity
        return {
            **previous,
            "holderIdentity": self._options.identity,
            # Rounded up: others must never count on less than we do.
            "leaseDurationSeconds": math.ceil(self._options.lease_duration_s),
            "acquireTime": previous.get("acquireTime", now) if is_ours else now,
            "renewTime": now,
            "leaseTransitions": transitions if is_ours or not previous else transitions + 1,
        }


def _exactly(seconds: float) -> aiohttp.ClientTimeout:
    """A time limit that is not rounded up to the next whole second, as aiohttp does with others."""
    return aiohttp.ClientTimeout(total=seconds, ceil_threshold=math.inf)
