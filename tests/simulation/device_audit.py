"""Invariants of claims and devices, checked on every change and at the end."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from tests.simulation.device_claims import USUAL_DELAY_S
from tests.simulation.device_objects import (
    device_claim_keys,
    is_reserved_for,
    owner_uid,
    results_of,
    uses_devices,
)
from tests.simulation.feasible_nodes import FINISHED
from tests.simulation.server import DEVICE_CLAIMS, PODS, SLICES, Change, Json, Key, ModelServer


class DeviceKey(NamedTuple):
    """Identifies a device."""

    driver: str
    pool: str
    name: str


def key_of(result: Json) -> DeviceKey:
    """The device of an allocation result."""
    return DeviceKey(result["driver"], result["pool"], result["device"])


class DeviceAuditor:
    """Follows claims and slices: no device is given twice, no counter or capacity overcommitted.

    Attributes:
        violations: One sentence each.
    """

    def __init__(self, server: ModelServer) -> None:
        self.violations: list[str] = []
        self._server = server
        self._devices: dict[DeviceKey, Json] = {}
        self._counters: dict[tuple[str, str], dict[str, dict[str, int]]] = {}
        self._holders: defaultdict[DeviceKey, dict[str, str]] = defaultdict(dict)
        self._consumed: defaultdict[DeviceKey, dict[str, Counter[str]]] = defaultdict(dict)
        server.subscribe(self._take, DEVICE_CLAIMS, SLICES)

    def check_placed(self, pod: Json, node_name: str) -> None:
        """Check a pod that the scheduler has just bound: its claims are its own, and reach it."""
        self.violations.extend(self._placed_violations(pod, node_name))

    def _placed_violations(self, pod: Json, node_name: str) -> Iterator[str]:
        uid = pod["metadata"]["uid"]
        subject = f"pod {uid} was bound to {node_name}"
        keys = device_claim_keys(pod)
        if uses_devices(pod) and len(keys) < max(1, len(pod["spec"].get("resourceClaims", ()))):
            yield f"{subject} without a claim for its devices"
        for key in keys:
            claim = self._server.collection(DEVICE_CLAIMS).get(key)
            if claim is None or not results_of(claim):
                yield f"{subject} before its claim {key[1]} was allocated"
            elif not is_reserved_for(claim, uid):
                yield f"{subject} without a reservation of its claim {key[1]}"
            elif not _reaches(claim, node_name):
                yield f"{subject}, out of reach of the devices of its claim {key[1]}"

    def _take(self, change: Change) -> None:
        if change.path == SLICES and change.after is not None:
            self._take_slice(change.after["spec"])
        elif change.path == DEVICE_CLAIMS:
            before, after = results_of(change.before), results_of(change.after)
            uid = change.current["metadata"]["uid"]
            if before == after:
                return
            for result in before:
                self._holders[key_of(result)].pop(uid, None)
                self._consumed[key_of(result)].pop(uid, None)
            for result in after:
                self._add(uid, change.current["metadata"]["name"], result)

    def _take_slice(self, spec: Json) -> None:
        """Remember devices and counters: drivers change which devices there are, not their size."""
        driver, pool = spec["driver"], spec["pool"]["name"]
        for device in spec.get("devices", ()):
            self._devices[DeviceKey(driver, pool, device["name"])] = device
        for counters in spec.get("sharedCounters", ()):
            sets = self._counters.setdefault((driver, pool), {})
            sets[counters["name"]] = _amounts(counters["counters"])

    def _add(self, uid: str, name: str, result: Json) -> None:
        device = key_of(result)
        if device not in self._devices:
            self.violations.append(f"claim {name} was given {device}, which never existed")
            return
        if "shareID" in result:
            used = {each: int(text) for each, text in result["consumedCapacity"].items()}
            mine = self._consumed[device].setdefault(uid, Counter())
            mine.update(used)
            self._check_capacity(device)
            return
        if self._holders[device]:
            others = " and to ".join(sorted(self._holders[device].values()))
            self.violations.append(f"{device} was given to {others} and to {name}")
        self._holders[device][uid] = name
        self._check_counters(device)

    def _check_capacity(self, device: DeviceKey) -> None:
        total: Counter[str] = sum(self._consumed[device].values(), Counter())
        for name, has in _amounts(self._devices[device]["capacity"]).items():
            if total[name] > has:
                self.violations.append(f"{device} gives {total[name]} of {has} {name}")

    def _check_counters(self, device: DeviceKey) -> None:
        pool = (device.driver, device.pool)
        used: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for other, holders in self._holders.items():
            if (other.driver, other.pool) == pool and holders:
                for each in self._devices[other].get("consumesCounters", ()):
                    used[each["counterSet"]].update(_amounts(each["counters"]))
        for counter_set, totals in used.items():
            for name, amount in totals.items():
                has = self._counters[pool][counter_set][name]
                if amount > has:
                    self.violations.append(f"{pool[1]} gives {amount} of {has} {name}")


def idle_allocations(server: ModelServer, scheduler_names: Collection[str]) -> Iterator[str]:
    """Claims that are allocated at the end, and no pod needs them.

    As in kube-scheduler, a claim of a user stays allocated without a reservation if its pod could
    not be bound after PreBind: the next pod may use it. A claim for extended resources stays with
    its pod if another scheduler bound the pod, or no scheduler serves it any more, and the
    scheduler that made the claim stopped before it could delete it: the claim controller sees an
    owner that lives. The claim controller may not have seen yet what changed within its usual
    delay.

    Args:
        server: The cluster.
        scheduler_names: The scheduler names that the last configuration serves.
    """
    pods = server.collection(PODS)
    in_use = {
        key: pod
        for pod in pods.values()
        if pod["status"].get("phase") not in FINISHED
        for key in device_claim_keys(pod)
    }
    ended = set(_ended_lately(server))
    for key, claim in server.collection(DEVICE_CLAIMS).items():
        uids = {owner_uid(claim), *(each["uid"] for each in claim["status"].get("reservedFor", ()))}
        if not results_of(claim) or uids & ended:
            continue
        for each in claim["status"].get("reservedFor", ()):
            if not _is_live(pods, (key[0], each["name"]), each["uid"]):
                yield f"claim {key[1]} is still reserved for pod {each['uid']}, which is gone"
        if key in in_use or _stays_with_its_owner(server, key[0], claim, scheduler_names):
            continue
        if owner_uid(claim) or claim["status"].get("reservedFor"):
            yield f"claim {key[1]} is allocated, and no pod uses it"


def _ended_lately(server: ModelServer) -> Iterator[str]:
    """The UIDs of the pods that have ended within the usual delay of the claim controller."""
    for change in reversed(server.history):
        if change.at < server.now() - USUAL_DELAY_S[1]:
            return
        if change.path != PODS:
            continue
        if change.after is None or change.after["status"].get("phase") in FINISHED:
            yield change.current["metadata"]["uid"]


def _stays_with_its_owner(
    server: ModelServer, namespace: str, claim: Json, scheduler_names: Collection[str]
) -> bool:
    """Whether nobody takes a claim from the pod that it was made for.

    Another scheduler has placed the pod, or the pod waits for a profile that was removed.
    """
    uid = owner_uid(claim)
    if not uid:
        return False
    pods = server.collection(PODS)
    key = (namespace, claim["metadata"]["ownerReferences"][0]["name"])
    if not _is_live(pods, key, uid):
        return False
    if pods[key]["spec"].get("nodeName"):
        return "foreign" in server.binders.get(uid, ())
    return pods[key]["spec"]["schedulerName"] not in scheduler_names


def lacks_claims(server: ModelServer, pod: Json) -> bool:
    """Whether a claim of a pod is missing, or is being deleted."""
    keys = device_claim_keys(pod)
    claims = server.collection(DEVICE_CLAIMS)
    return len(keys) < len(pod["spec"].get("resourceClaims", ())) or any(
        key not in claims or "deletionTimestamp" in claims[key]["metadata"] for key in keys
    )


def _is_live(pods: Mapping[Key, Json], key: Key, uid: str) -> bool:
    pod = pods.get(key)
    return (
        pod is not None
        and pod["metadata"]["uid"] == uid
        and pod["status"].get("phase") not in FINISHED
    )


def _reaches(claim: Json, node_name: str) -> bool:
    selector = claim["status"]["allocation"].get("nodeSelector")
    if selector is None:
        return True
    (term,) = selector["nodeSelectorTerms"]
    fields = term.get("matchFields", ())
    return all(node_name in each["values"] for each in fields)


def _amounts(given: Json) -> dict[str, int]:
    return {name: int(each["value"]) for name, each in given.items()}
