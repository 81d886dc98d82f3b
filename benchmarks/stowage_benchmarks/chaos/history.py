"""The history of a cluster under chaos: one line for each change in its store or write request.

The cluster's process writes the lines itself, at the moment of each change and in their order: no
watch stands between that could break, and no fault. Each line says who made the change.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from aiohttp import web

from simcluster import SimulatedCluster
from simcluster.auth.rbac import Decision
from simcluster.auth.request_attributes import Attributes
from simcluster.auth.users import User
from simcluster.kinds.resources import EVENTS, LEASES, NODES, POD_GROUPS, PODS, RESOURCE_CLAIMS
from simcluster.store.store import Change
from stowage.api.values.quantity import quantity_milli_value
from stowage.operator.lease import LEASE_API, LeaderElectionOptions

Json: TypeAlias = dict[str, Any]

_ELECTION = LeaderElectionOptions(identity="")
OWN_LEASE = {
    "apiVersion": LEASE_API,
    "kind": "Lease",
    "namespace": _ELECTION.lease_namespace,
    "name": _ELECTION.lease_name,
}
"""The Lease of the replicas, as an Event refers to it."""
PASSED_AT = "X-Passed-At"
"""Header with the monotonic seconds of this machine when the request passed the network."""
_FLUSH_INTERVAL_S = 0.05
_author: ContextVar[str] = ContextVar("author", default="")
_arrived_at: ContextVar[float] = ContextVar("arrived_at", default=0.0)
_passed_at: ContextVar[float] = ContextVar("passed_at", default=0.0)


class PodChange(msgspec.Struct, tag="pod", omit_defaults=True):
    """A pod was created, changed or deleted.

    Attributes:
        at: Monotonic seconds of this machine.
        change: ADDED, MODIFIED or DELETED.
        by: The replica that sent the request; empty for other clients.
        cpu_milli: Its CPU request.
        group: The pod group that it is a member of.
        is_restored: Whether the store went back to a backup; nobody asked for the change.
    """

    at: float
    change: str
    by: str
    uid: str
    name: str
    cpu_milli: int
    scheduler: str = ""
    node: str = ""
    phase: str = ""
    reason: str = ""
    is_deleting: bool = False
    group: str = ""
    is_restored: bool = False


class NodeChange(msgspec.Struct, tag="node", omit_defaults=True):
    """A node was created, changed or deleted."""

    at: float
    change: str
    name: str


class LeaseChange(msgspec.Struct, tag="lease", omit_defaults=True):
    """The lease was acquired, renewed or released."""

    at: float
    by: str
    holder: str = ""


class WriteArrived(msgspec.Struct, tag="write", omit_defaults=True):
    """A write request of a replica reached the API server; its outcome is not part of the line.

    An Event is a line only if it is stored, because the request does not say what it is about.

    Attributes:
        at: When the server began to handle it.
        verb: As in a rule of RBAC.
        resource: With its subresource, as in ``pods/binding``; never leases, nor Events on the
            Lease of the replicas: that it was lost is written after that, and without it.
        passed_at: When it passed the network between replica and server; 0 if it came without one.
    """

    at: float
    by: str
    verb: str
    resource: str
    name: str = ""
    passed_at: float = 0.0

    @property
    def waited_s(self) -> float:
        """How long it waited in front of the server."""
        return self.at - self.passed_at if self.passed_at else 0.0


class ClaimChange(msgspec.Struct, tag="claim", omit_defaults=True):
    """A claim for devices was created, changed or deleted.

    Attributes:
        devices: ``driver/pool/device`` of the devices that it has for itself.
        reserved_for: UIDs of the pods that may use them.
    """

    at: float
    change: str
    by: str
    uid: str
    name: str
    devices: tuple[str, ...] = ()
    reserved_for: tuple[str, ...] = ()


class GroupChange(msgspec.Struct, tag="group", omit_defaults=True):
    """A pod group was created, changed or deleted.

    Attributes:
        min_count: How many members it needs.
    """

    at: float
    change: str
    name: str
    min_count: int


Line: TypeAlias = PodChange | GroupChange | ClaimChange | NodeChange | LeaseChange | WriteArrived

_WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
#: Events are deleted by the server, when they are old.
_EVENT_WRITES = {"ADDED": "create", "MODIFIED": "patch"}

_DECODER: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)


class HistoryWriter:
    """Writes the history of a cluster to a file, from the beginning.

    Args:
        cluster: Not started yet; its roles are in force, so that its door names who enters.
        file: Where the lines go.
    """

    def __init__(self, cluster: SimulatedCluster, file: Path) -> None:
        self._encode = msgspec.json.Encoder().encode
        self._store = cluster.store
        self._lines: list[bytes] = []
        self._file = file
        store = cluster.store
        store.subscribe(PODS.stored_in, self._on_pod)
        store.subscribe(POD_GROUPS.stored_in, self._on_group)
        store.subscribe(RESOURCE_CLAIMS.stored_in, self._on_claim)
        store.subscribe(NODES.stored_in, self._on_node)
        store.subscribe(LEASES.stored_in, self._on_lease)
        store.subscribe(EVENTS.stored_in, self._on_event)
        cluster.server.on_request = _note_way
        cluster.server.access.audit = self._on_request

    async def run(self) -> None:
        """Write new lines many times a second until cancelled."""
        with self._file.open("ab", buffering=0) as file:
            while True:
                lines, self._lines = self._lines, []
                if lines:
                    file.write(b"\n".join(lines) + b"\n")
                await asyncio.sleep(_FLUSH_INTERVAL_S)

    def _add(self, line: Line) -> None:
        self._lines.append(self._encode(line))

    def _on_request(self, user: User, attributes: Attributes, decision: Decision) -> None:
        # What the store does from here on in this request's task is this user's work.
        _author.set(user.name if user.name.startswith("replica-") else "")
        _arrived_at.set(time.monotonic())
        verb, resource, name = attributes.verb, attributes.resource, attributes.name
        if not _author.get() or not decision.is_allowed or verb not in _WRITES:
            return
        if resource not in ("leases", "events"):
            parts = (resource, attributes.subresource) if attributes.subresource else (resource,)
            self._add_write(verb, "/".join(parts), name)

    def _on_event(self, change: Change) -> None:
        about, verb = change.current.obj.get("involvedObject", {}), _EVENT_WRITES.get(change.type)
        is_of_lease = OWN_LEASE.items() <= about.items()
        if _author.get() and verb is not None and not is_of_lease:
            self._add_write(verb, "events", change.current.name)

    def _add_write(self, verb: str, resource: str, name: str) -> None:
        at, passed_at = _arrived_at.get(), _passed_at.get()
        self._add(WriteArrived(at, _author.get(), verb, resource, name, passed_at))

    def _on_pod(self, change: Change) -> None:
        pod = change.current.obj
        spec, status, metadata = pod["spec"], pod["status"], pod["metadata"]
        self._add(
            PodChange(
                time.monotonic(),
                change.type,
                _author.get(),
                metadata["uid"],
                metadata["name"],
                cpu_milli_of(spec),
                spec.get("schedulerName", ""),
                spec.get("nodeName", ""),
                status.get("phase", ""),
                status.get("reason", ""),
                "deletionTimestamp" in metadata,
                spec.get("schedulingGroup", {}).get("podGroupName", ""),
                self._store.is_restoring,
            )
        )

    def _on_group(self, change: Change) -> None:
        gang = change.current.obj["spec"]["schedulingPolicy"].get("gang", {})
        self._add(
            GroupChange(time.monotonic(), change.type, change.current.name, gang.get("minCount", 1))
        )

    def _on_claim(self, change: Change) -> None:
        claim = change.current.obj
        status, metadata = claim.get("status") or {}, claim["metadata"]
        self._add(
            ClaimChange(
                time.monotonic(),
                change.type,
                _author.get(),
                metadata["uid"],
                metadata["name"],
                tuple(own_devices(status)),
                tuple(each["uid"] for each in status.get("reservedFor") or ()),
            )
        )

    def _on_node(self, change: Change) -> None:
        self._add(NodeChange(time.monotonic(), change.type, change.current.name))

    def _on_lease(self, change: Change) -> None:
        holder = change.current.obj.get("spec", {}).get("holderIdentity") or ""
        self._add(LeaseChange(time.monotonic(), _author.get(), holder))


class HistoryReader:
    """Reads a history while it is being written.

    Args:
        file: Written by a `HistoryWriter`.
    """

    def __init__(self, file: Path) -> None:
        self._file = file.open("rb")
        self._rest = b""

    def new_lines(self) -> Iterator[Line]:
        """The lines written since the last call."""
        *lines, self._rest = (self._rest + self._file.read()).split(b"\n")
        return map(_DECODER.decode, lines)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _note_way(request: web.BaseRequest) -> None:
    # aiohttp serves all requests of a connection in one task, and so in one context.
    _passed_at.set(float(request.headers.get(PASSED_AT, 0.0)))


def own_devices(status: Json) -> Iterator[str]:
    """The devices that a claim has for itself: without shares, and without admin access."""
    devices = (status.get("allocation") or {}).get("devices") or {}
    for result in devices.get("results") or ():
        if not result.get("shareID") and not result.get("adminAccess"):
            yield f"{result['driver']}/{result['pool']}/{result['device']}"


def cpu_milli_of(spec: Json) -> int:
    """CPU request of a pod with one container, in milli-CPUs."""
    requests = spec["containers"][0].get("resources", {}).get("requests", {})
    return quantity_milli_value(requests.get("cpu", "0"))
