"""A simulated claim controller: makes the claims of pods, and takes them back, perhaps late."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.simulation.device_objects import (
    FINALIZER,
    delete_claim,
    device_claim_keys,
    is_reserved_for,
    make_device_claim,
    owner_uid,
    results_of,
    status_entries,
    store_claim,
)
from tests.simulation.fault_rates import FaultRates
from tests.simulation.feasible_nodes import FINISHED
from tests.simulation.loop import VirtualLoop
from tests.simulation.server import DEVICE_CLAIMS, PODS, Change, Json, Key, ModelServer

USUAL_DELAY_S = (0.01, 1.0)
LONG_DELAY_S = (2.0, 20.0)


class DeviceClaimController:
    """The ``resourceclaim`` controller and the garbage collector of claims.

    Args:
        loop: The event loop.
        server: Stores the pods and claims.
        rng: Draws delays.
        fault_rates: Counts what happens.

    Attributes:
        trouble: The probability that it acts late.
    """

    def __init__(
        self, loop: VirtualLoop, server: ModelServer, rng: random.Random, fault_rates: FaultRates
    ) -> None:
        self.trouble = 0.0
        self._loop = loop
        self._server = server
        self._rng = rng
        self._fault_rates = fault_rates
        self._num_made = 0
        server.subscribe(self._take, PODS, DEVICE_CLAIMS)

    def _take(self, change: Change) -> None:
        metadata = change.current["metadata"]
        key = (metadata["namespace"], metadata["name"])
        if change.path == DEVICE_CLAIMS:
            self._later(self._reconcile_claim, key)
            if change.after is None:
                self._reconcile_users(key)
            return
        keys = device_claim_keys(change.current)
        has_claims = bool(change.current["spec"].get("resourceClaims") or keys)
        if has_claims:
            self._later(self._reconcile_pod, key)
        # The garbage collector goes by owner references only: the pod's status does not name a
        # claim whose scheduler stopped between writing the claim and naming it there.
        if has_claims or change.after is None:
            for claim_key, claim in self._server.collection(DEVICE_CLAIMS).items():
                if claim_key in keys or owner_uid(claim) == metadata["uid"]:
                    self._later(self._reconcile_claim, claim_key)

    def _reconcile_users(self, claim_key: Key) -> None:
        """Make a deleted claim anew for the pods whose status names it."""
        for key, pod in self._server.collection(PODS).items():
            if claim_key in device_claim_keys(pod):
                self._later(self._reconcile_pod, key)

    def _later(self, act: Callable[[Key], None], key: Key) -> None:
        delay_s = self._rng.uniform(*USUAL_DELAY_S)
        if self._rng.random() < self.trouble:
            self._fault_rates.happened["slow claim controller"] += 1
            delay_s = self._rng.uniform(*LONG_DELAY_S)
        self._loop.call_outside(delay_s, act, key)

    def _reconcile_pod(self, key: Key) -> None:
        """Make the claims that a pod lacks; reserve those of a pod without a scheduler."""
        pod = self._server.collection(PODS).get(key)
        if pod is None or _is_done(pod) or pod["metadata"].get("deletionTimestamp"):
            return
        claims = self._server.collection(DEVICE_CLAIMS)
        made = {each["name"]: each["resourceClaimName"] for each in status_entries(pod)}
        for entry in pod["spec"].get("resourceClaims", ()):
            kind, name = entry.get("resourceClaimTemplateName"), made.get(entry["name"])
            if kind and (name is None or (key[0], name) not in claims):
                self._num_made += 1
                claim = make_device_claim(f"{key[1]}-made-{self._num_made}", kind, pod)
                made[entry["name"]] = self._server.create(DEVICE_CLAIMS, claim)["metadata"]["name"]
        names = [{"name": name, "resourceClaimName": claim} for name, claim in made.items()]
        if names != status_entries(pod):
            self._server.update(PODS, key, status={"resourceClaimStatuses": names})
        if pod["spec"].get("nodeName"):
            self._reserve(pod)

    def _reserve(self, pod: Json) -> None:
        for key in device_claim_keys(pod):
            claim = self._server.collection(DEVICE_CLAIMS).get(key)
            uid = pod["metadata"]["uid"]
            if claim is None or not results_of(claim) or is_reserved_for(claim, uid):
                continue
            if not claim["metadata"].get("deletionTimestamp"):
                consumer = {"resource": "pods", "name": pod["metadata"]["name"], "uid": uid}
                reserved = [*claim["status"].get("reservedFor", ()), consumer]
                self._write(claim, {**claim["status"], "reservedFor": reserved})

    def _reconcile_claim(self, key: Key) -> None:
        """Drop reservations of pods that are gone or done; deallocate with the last one."""
        claim = self._server.collection(DEVICE_CLAIMS).get(key)
        if claim is None:
            return
        reserved = claim["status"].get("reservedFor", [])
        valid = [each for each in reserved if self._is_valid(key[0], each)]
        is_ending = claim["metadata"].get("deletionTimestamp") and FINALIZER in claim[
            "metadata"
        ].get("finalizers", ())
        if not valid and (reserved or is_ending):
            self._fault_rates.happened["claim deallocated"] += 1
            self._deallocate(claim)
        elif len(valid) < len(reserved):
            self._write(claim, {**claim["status"], "reservedFor": valid})
        if not valid and owner_uid(claim) and not self._has_owner(key[0], claim):
            delete_claim(self._server, key)

    def _deallocate(self, claim: Json) -> None:
        """Clear the status, then remove the finalizer: two writes, with time between them."""
        written = self._write(claim, {})
        metadata = written["metadata"]
        kept = [each for each in metadata.get("finalizers", ()) if each != FINALIZER]
        store_claim(self._server, {**written, "metadata": {**metadata, "finalizers": kept}})

    def _write(self, claim: Json, status: Json) -> Json:
        return store_claim(self._server, {**claim, "status": status})

    def _is_valid(self, namespace: str, consumer: Json) -> bool:
        pod = self._server.collection(PODS).get((namespace, consumer["name"]))
        return pod is not None and pod["metadata"]["uid"] == consumer["uid"] and not _is_done(pod)

    def _has_owner(self, namespace: str, claim: Json) -> bool:
        name = claim["metadata"]["ownerReferences"][0]["name"]
        return self._is_valid(namespace, {"name": name, "uid": owner_uid(claim)})


def _is_done(pod: Json) -> bool:
    is_terminating = pod["metadata"].get("deletionTimestamp") and not pod["spec"].get("nodeName")
    return bool(is_terminating) or pod["status"].get("phase") in FINISHED
