"""A simulated volume controller: binds claims slowly, to another volume, or not at all."""

from __future__ import annotations

import random

from stowage.api.values.volume_claims import BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE
from tests.simulation.fault_rates import FaultRates
from tests.simulation.loop import VirtualLoop
from tests.simulation.objects import AT_ONCE, FAST, LOCAL, make_volume, reference_to
from tests.simulation.server import CLAIMS, VOLUMES, Change, Json, Key, ModelServer

USUAL_DELAY_S = (0.01, 1.5)
LONG_DELAY_S = (2.0, 30.0)


class VolumeController:
    """The persistent volume controller and a provisioner in one.

    Args:
        loop: The event loop.
        server: Stores the claims and volumes.
        rng: Draws delays and failures.
        fault_rates: Counts what happens.

    Attributes:
        trouble: The probability that a volume takes long, cannot be provisioned, or is bound to
            another claim than the scheduler chose.
    """

    def __init__(
        self, loop: VirtualLoop, server: ModelServer, rng: random.Random, fault_rates: FaultRates
    ) -> None:
        self.trouble = 0.0
        self._loop = loop
        self._server = server
        self._rng = rng
        self._fault_rates = fault_rates
        server.subscribe(self._take, CLAIMS, VOLUMES)

    def bind_to_another(self, key: Key) -> None:
        """Bind a waiting claim to any free volume of its class."""
        claim = self._server.collection(CLAIMS).get(key)
        if claim is None or claim["spec"].get("volumeName") or self._volumes_given_to(claim):
            return
        free = [
            volume
            for volume in self._server.collection(VOLUMES).values()
            if "claimRef" not in volume["spec"]
            and volume["spec"]["storageClassName"] == claim["spec"]["storageClassName"]
        ]
        if free:
            self._fault_rates.happened["claim bound to another volume"] += 1
            self._write_claim_ref(self._rng.choice(free), claim)

    def _take(self, change: Change) -> None:
        if change.path == CLAIMS:
            obj = change.current
            key = (obj["metadata"]["namespace"], obj["metadata"]["name"])
            if change.after is None:
                self._later(self._release, obj["metadata"]["uid"])
            elif not obj["spec"].get("volumeName"):
                self._later(self._reconcile_claim, key, obj["metadata"]["uid"])
        elif change.path == VOLUMES and change.after is not None:
            reference = change.after["spec"].get("claimRef")
            if reference is not None:
                key = (reference["namespace"], reference["name"])
                self._later(self._reconcile_claim, key, reference["uid"])

    def _later(self, act: object, *arguments: object) -> None:
        delay_s = self._rng.uniform(*USUAL_DELAY_S)
        if self._rng.random() < self.trouble:
            self._fault_rates.happened["slow volume"] += 1
            delay_s = self._rng.uniform(*LONG_DELAY_S)
        self._loop.call_outside(delay_s, act, *arguments)  # type: ignore[arg-type]

    def _reconcile_claim(self, key: Key, uid: str) -> None:
        claim = self._server.collection(CLAIMS).get(key)
        if claim is None or claim["metadata"]["uid"] != uid:
            self._release(uid)
            return
        given = self._volumes_given_to(claim)
        if claim["spec"].get("volumeName"):
            for volume in given:
                if volume["metadata"]["name"] != claim["spec"]["volumeName"]:
                    self._reclaim(volume)
        elif given:
            self._bind(claim, given[0])
        elif claim["spec"]["storageClassName"] == AT_ONCE:
            self._provision(claim, "")
        elif claim["spec"]["storageClassName"] == FAST:
            self._provision_on_selected_node(claim)

    def _provision_on_selected_node(self, claim: Json) -> None:
        annotations = claim["metadata"].get("annotations", {})
        node_name = annotations.get(SELECTED_NODE)
        if node_name is None:
            return
        if self._rng.random() < self.trouble:
            self._fault_rates.happened["volume not made"] += 1
            rest = {name: text for name, text in annotations.items() if name != SELECTED_NODE}
            self._server.update(CLAIMS, _key(claim), metadata={"annotations": rest})
            return
        self._provision(claim, node_name)

    def _provision(self, claim: Json, node_name: str) -> None:
        name = f"made-for-{claim['metadata']['uid']}"
        if ("", name) not in self._server.collection(VOLUMES):
            class_name = claim["spec"]["storageClassName"]
            self._server.create(VOLUMES, make_volume(name, class_name, node_name, claim))

    def _volumes_given_to(self, claim: Json) -> list[Json]:
        uid = claim["metadata"]["uid"]
        return [
            volume
            for volume in self._server.collection(VOLUMES).values()
            if volume["spec"].get("claimRef", {}).get("uid") == uid
        ]

    def _write_claim_ref(self, volume: Json, claim: Json) -> None:
        """Write the volume's claimRef, the first step of binding; the claim is written later."""
        metadata = {"annotations": {BOUND_BY_CONTROLLER: "yes"}}
        spec = {"claimRef": reference_to(claim)}
        self._server.update(VOLUMES, _key(volume), metadata=metadata, spec=spec)

    def _bind(self, claim: Json, volume: Json) -> None:
        """Write the claim's volume name, the second step of binding."""
        annotations = {**claim["metadata"].get("annotations", {}), BIND_COMPLETED: "yes"}
        self._server.update(
            CLAIMS,
            _key(claim),
            metadata={"annotations": annotations},
            spec={"volumeName": volume["metadata"]["name"]},
            status={"phase": "Bound"},
        )

    def _release(self, uid: str) -> None:
        """Release a volume whose claim was deleted."""
        for volume in list(self._server.collection(VOLUMES).values()):
            if volume["spec"].get("claimRef", {}).get("uid") == uid:
                self._reclaim(volume)

    def _reclaim(self, volume: Json) -> None:
        """Free a pre-provisioned volume, and delete a dynamically provisioned one."""
        if volume["spec"]["storageClassName"] != LOCAL:
            self._server.delete(VOLUMES, _key(volume))
            return
        spec = {name: value for name, value in volume["spec"].items() if name != "claimRef"}
        metadata = {**volume["metadata"], "annotations": {}}
        self._server.replace(VOLUMES, {**volume, "metadata": metadata, "spec": spec})


def _key(obj: Json) -> Key:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
