"""Pods that could be bound at once: how long it takes is how long the scheduler was not itself."""

from __future__ import annotations

from collections import defaultdict

from tests.simulation.loop import VirtualLoop
from tests.simulation.objects import FAST, HOSTNAME, make_claim, make_csi_node, make_node, make_pod
from tests.simulation.server import CLAIMS, CSI_NODES, NODES, PODS, Change, ModelServer

NODE = "probe-node"
TAINT = {"key": "probe", "value": "", "effect": "NoSchedule"}
CPUS = 32


class Probes:
    """Sends pods to a node that is theirs alone, and notes when they are bound.

    Attributes:
        sent_at: When each wave was sent.
        bound_at: When the pods of each wave were bound, as far as they were.
    """

    def __init__(self, loop: VirtualLoop, server: ModelServer) -> None:
        self.sent_at: dict[str, float] = {}
        self.bound_at: defaultdict[str, dict[str, float]] = defaultdict(dict)
        self._loop = loop
        self._server = server
        self._wave_of: dict[str, str] = {}

    def begin(self) -> None:
        """Make the node."""
        node = make_node(NODE, CPUS)
        self._server.create(NODES, {**node, "spec": {"taints": [TAINT]}})
        self._server.create(CSI_NODES, make_csi_node(NODE))
        self._server.subscribe(self._take)

    def send(self, wave: str) -> None:
        """Make a plain pod and one with a volume."""
        self.sent_at[wave] = self._loop.time()
        number = len(self.sent_at)
        toleration = {"key": "probe", "operator": "Exists"}
        for kind in ("plain", "with-volume"):
            name = f"probe-{number}-{kind}"
            claim = name if kind == "with-volume" else ""
            if claim:
                self._server.create(CLAIMS, make_claim(claim, FAST))
            selector = {HOSTNAME: NODE}
            pod = make_pod(name, "1", claim=claim, tolerations=[toleration], nodeSelector=selector)
            self._wave_of[name] = wave
            self._server.create(PODS, pod)

    def bound_after(self, wave: str) -> dict[str, float]:
        """How long each pod of a wave has waited; infinite if it still does."""
        return {
            name: self.bound_at[wave].get(name, float("inf")) - self.sent_at[wave]
            for name, sent in self._wave_of.items()
            if sent == wave
        }

    def _take(self, change: Change) -> None:
        if change.path != PODS or change.after is None:
            return
        name = change.after["metadata"]["name"]
        wave = self._wave_of.get(name)
        if wave is not None and change.after["spec"].get("nodeName"):
            self.bound_at[wave].setdefault(name, change.at)
