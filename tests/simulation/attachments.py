"""A simulated attach-detach controller, which lags behind the pods."""

from __future__ import annotations

import random

from tests.simulation.fault_rates import FaultRates
from tests.simulation.loop import VirtualLoop
from tests.simulation.objects import DRIVER, make_attachment
from tests.simulation.server import ATTACHMENTS, CLAIMS, PODS, VOLUMES, Change, Json, ModelServer
from tests.simulation.users import claim_of

USUAL_DELAY_S = (0.05, 3.0)
LONG_DELAY_S = (5.0, 25.0)


class AttachDetachController:
    """Attaches the volumes that pods on a node use, and detaches those that no pod there uses.

    Args:
        loop: The event loop.
        server: Stores the pods and attachments.
        rng: Draws delays.
        fault_rates: Counts what happens.

    Attributes:
        trouble: The probability that attaching or detaching takes long.
    """

    def __init__(
        self, loop: VirtualLoop, server: ModelServer, rng: random.Random, fault_rates: FaultRates
    ) -> None:
        self.trouble = 0.0
        self._loop = loop
        self._server = server
        self._rng = rng
        self._fault_rates = fault_rates
        server.subscribe(self._take, PODS)

    def _take(self, change: Change) -> None:
        pod = change.current
        node_name = pod["spec"].get("nodeName", "")
        name = volume_of(self._server, pod) if node_name else ""
        if not name:
            return
        before = change.before or pod
        is_new = not before["spec"].get("nodeName") or change.before is None
        if (
            is_new
            or change.after is None
            or pod["status"].get("phase") != before["status"]["phase"]
        ):
            self._loop.call_outside(self._delay(), self._reconcile, name, node_name)

    def _delay(self) -> float:
        if self._rng.random() < self.trouble:
            self._fault_rates.happened["slow attachment"] += 1
            return self._rng.uniform(*LONG_DELAY_S)
        return self._rng.uniform(*USUAL_DELAY_S)

    def _reconcile(self, volume_name: str, node_name: str) -> None:
        """Attach the volume if a pod on the node uses it, else detach it."""
        attachment = make_attachment(volume_name, node_name)
        key = ("", attachment["metadata"]["name"])
        is_attached = key in self._server.collection(ATTACHMENTS)
        if is_used(self._server, volume_name, node_name) == is_attached:
            return
        self._fault_rates.happened["detached" if is_attached else "attached"] += 1
        if is_attached:
            self._server.delete(ATTACHMENTS, key)
        else:
            self._server.create(ATTACHMENTS, attachment)


def volume_of(server: ModelServer, pod: Json) -> str:
    """The name of the CSI volume of a pod; empty if it has none."""
    claim = server.collection(CLAIMS).get((pod["metadata"]["namespace"], claim_of(pod)))
    name = "" if claim is None else str(claim["spec"].get("volumeName", ""))
    volume = server.collection(VOLUMES).get(("", name), {"spec": {}})
    return name if volume["spec"].get("csi", {}).get("driver") == DRIVER else ""


def is_used(server: ModelServer, volume_name: str, node_name: str, beside: str = "") -> bool:
    """Whether a pod on a node, other than the one with that UID, uses a volume."""
    return any(
        pod["spec"].get("nodeName") == node_name
        and pod["status"].get("phase") not in ("Succeeded", "Failed")
        and pod["metadata"]["uid"] != beside
        and volume_of(server, pod) == volume_name
        for pod in server.collection(PODS).values()
    )
