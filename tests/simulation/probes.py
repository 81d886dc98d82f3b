"""Probe pods, which fit at once: their time to bind measures how fast the scheduler recovers."""

from __future__ import annotations

from collections import defaultdict

from tests.simulation.fault_rates import RECOVERY_S
from tests.simulation.loop import VirtualLoop
from tests.simulation.objects import (
    FAST,
    HOSTNAME,
    MAX_ATTACHED,
    make_attachment,
    make_claim,
    make_csi_node,
    make_node,
    make_pod,
    make_volume,
)
from tests.simulation.server import (
    ATTACHMENTS,
    CLAIMS,
    CSI_NODES,
    NODES,
    PODS,
    VOLUMES,
    Change,
    ModelServer,
)

NODE = "probe-node"
FULL_NODE = "probe-full"
"""This node has its maximum of attached volumes, and no pod uses them."""
TAINT = {"key": "probe", "value": "", "effect": "NoSchedule"}
CPUS = 32
KEPT_OUT_S = 10.0
"""How long a pod waits there until a volume is detached."""


class Probes:
    """Creates pods for nodes that only they can use, and records when they are bound.

    Attributes:
        sent_at: When the pods of each wave were created.
        bound_at: When the bound pods of each wave were bound.
    """

    def __init__(self, loop: VirtualLoop, server: ModelServer) -> None:
        self.sent_at: dict[str, float] = {}
        self.bound_at: defaultdict[str, dict[str, float]] = defaultdict(dict)
        self._loop = loop
        self._server = server
        self._wave_of: dict[str, str] = {}

    def begin(self) -> None:
        """Create the nodes, and later a pod for the full node."""
        for name in (NODE, FULL_NODE):
            self._server.create(NODES, {**make_node(name, CPUS), "spec": {"taints": [TAINT]}})
            self._server.create(CSI_NODES, make_csi_node(name))
        attached = [f"probe-volume-{index}" for index in range(MAX_ATTACHED)]
        for name in attached:
            # The volume belongs to a claim, so that no other claim is bound to it.
            claim = self._server.create(CLAIMS, make_claim(name, FAST))
            self._server.create(VOLUMES, make_volume(name, FAST, claim=claim))
            self._server.create(ATTACHMENTS, make_attachment(name, FULL_NODE))
        self._server.subscribe(self._take, PODS)
        self._loop.call_outside(RECOVERY_S, self._send_to_full_node)
        self._loop.call_outside(RECOVERY_S + KEPT_OUT_S, self._detach, attached[0])

    def send(self, wave: str) -> None:
        """Create a plain pod and one with a volume."""
        self.sent_at[wave] = self._loop.time()
        for kind in ("plain", "with-volume"):
            self._make_pod(kind, wave, NODE)

    def bound_after(self, wave: str) -> dict[str, float]:
        """How long each pod of a wave waited until it was bound; infinite if it still waits."""
        return {
            name: self.bound_at[wave].get(name, float("inf")) - self.sent_at[wave]
            for name, sent in self._wave_of.items()
            if sent == wave
        }

    def _send_to_full_node(self) -> None:
        """Create a pod for the full node; its time counts from the detachment."""
        wave = "after a detachment"
        self.sent_at[wave] = self._loop.time() + KEPT_OUT_S
        self._make_pod("with-volume", wave, FULL_NODE)

    def _detach(self, volume_name: str) -> None:
        name = make_attachment(volume_name, FULL_NODE)["metadata"]["name"]
        self._server.delete(ATTACHMENTS, ("", name))

    def _make_pod(self, kind: str, wave: str, node_name: str) -> None:
        name = f"probe-{len(self.sent_at)}-{kind}"
        claim = name if kind == "with-volume" else ""
        if claim:
            self._server.create(CLAIMS, make_claim(claim, FAST))
        toleration, selector = {"key": "probe", "operator": "Exists"}, {HOSTNAME: node_name}
        pod = make_pod(name, "1", claim=claim, tolerations=[toleration], nodeSelector=selector)
        self._wave_of[name] = wave
        self._server.create(PODS, pod)

    def _take(self, change: Change) -> None:
        if change.after is None:
            return
        name = change.after["metadata"]["name"]
        wave = self._wave_of.get(name)
        if wave is not None and change.after["spec"].get("nodeName"):
            self.bound_at[wave].setdefault(name, change.at)
