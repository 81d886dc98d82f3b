"""Simulated kubelets: run bound pods, and end terminating ones."""

from __future__ import annotations

import random

from tests.simulation.device_objects import device_claim_keys, is_reserved_for
from tests.simulation.loop import VirtualLoop
from tests.simulation.server import DEVICE_CLAIMS, PODS, Change, Json, Key, ModelServer

RETRY_S = 3.0


class Kubelets:
    """The kubelets of all nodes.

    Args:
        loop: The event loop.
        server: Stores the pods.
        rng: Draws delays.
    """

    def __init__(self, loop: VirtualLoop, server: ModelServer, rng: random.Random) -> None:
        self._loop = loop
        self._server = server
        self._rng = rng
        server.subscribe(self._take, PODS)

    def _take(self, change: Change) -> None:
        """Run a bound pod, or end a terminating one; the auditor checks the capacity."""
        if change.after is None:
            return
        pod = change.after
        if not pod["spec"].get("nodeName"):
            return
        key, uid = (pod["metadata"]["namespace"], pod["metadata"]["name"]), pod["metadata"]["uid"]
        if pod["metadata"].get("deletionTimestamp"):
            self._loop.call_outside(self._rng.uniform(0.01, 5.0), self._end_pod, key, uid)
        elif pod["status"].get("phase") == "Pending":
            self._loop.call_outside(self._rng.uniform(0.01, 0.5), self._run_pod, key, uid)

    def _run_pod(self, key: Key, uid: str) -> None:
        pod = self._server.collection(PODS).get(key)
        if pod is None or pod["metadata"]["uid"] != uid:
            return
        if pod["status"]["phase"] == "Pending":
            if not self._has_devices(pod):
                self._loop.call_outside(RETRY_S, self._run_pod, key, uid)
                return
            started = {"phase": "Running", "startTime": self._server.timestamp()}
            self._server.update(PODS, key, status=started)

    def _has_devices(self, pod: Json) -> bool:
        """Whether the claims of a pod are allocated and reserved for it."""
        claims = self._server.collection(DEVICE_CLAIMS)
        return all(
            (claim := claims.get(key)) is not None
            and is_reserved_for(claim, pod["metadata"]["uid"])
            for key in device_claim_keys(pod)
        )

    def _end_pod(self, key: Key, uid: str) -> None:
        pod = self._server.collection(PODS).get(key)
        if pod is not None and pod["metadata"]["uid"] == uid:
            self._server.delete(PODS, key)
