"""Invariants of claims and volumes, checked on every change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

from tests.simulation.attachments import is_used, volume_of
from tests.simulation.fault_rates import RECOVERY_S, FaultRates
from tests.simulation.feasible_nodes import FINISHED
from tests.simulation.objects import DRIVER, HOSTNAME, MAX_ATTACHED
from tests.simulation.server import (
    ATTACHMENTS,
    CLAIMS,
    CSI_NODES,
    PODS,
    VOLUMES,
    Change,
    Json,
    ModelServer,
)
from tests.simulation.users import claim_of

SEEN_S = 10.0
"""How soon the scheduler knows an attachment, without faults."""


class StorageAuditor:
    """Follows claims and volumes, and checks the nodes of bound pods.

    Attributes:
        violations: One sentence each.
    """

    def __init__(
        self, server: ModelServer, fault_rates: FaultRates, now: Callable[[], float]
    ) -> None:
        self.violations: list[str] = []
        self._server = server
        self._fault_rates = fault_rates
        self._now = now
        self._attached_at: dict[str, float] = {}
        self._once_without_limit: set[str] = set()
        self._uids: defaultdict[str, set[str]] = defaultdict(set)
        server.subscribe(self._take, CLAIMS, VOLUMES, CSI_NODES, ATTACHMENTS)

    def check_placed(self, pod: Json, node_name: str, foreign: set[str]) -> None:
        """Check a pod that the scheduler has just bound.

        Args:
            pod: The stored pod.
            node_name: Its node.
            foreign: UIDs of pods that other schedulers placed.
        """
        name = claim_of(pod)
        if name:
            self.violations.extend(self._claim_violations(pod, name, node_name))
            self.violations.extend(self._limit_violations(pod, node_name, foreign))

    def _take(self, change: Change) -> None:
        if change.path == CLAIMS and change.after is not None:
            metadata = change.after["metadata"]
            self._uids[metadata["name"]].add(metadata["uid"])
            self._check_named_once(change.after)
        elif change.path == VOLUMES and change.after is not None and change.before is not None:
            self._check_not_taken(change.before, change.after)
        elif change.path == ATTACHMENTS:
            self._attached_at[change.current["metadata"]["name"]] = change.at
        elif change.path == CSI_NODES and change.after is None:
            self._once_without_limit.add(change.current["metadata"]["name"])

    def _check_named_once(self, claim: Json) -> None:
        volume_name = claim["spec"].get("volumeName")
        names = [
            other["metadata"]["name"]
            for other in self._server.collection(CLAIMS).values()
            if volume_name and other["spec"].get("volumeName") == volume_name
        ]
        if len(names) > 1:
            self.violations.append(f"volume {volume_name} is claimed by {' and '.join(names)}")

    def _check_not_taken(self, before: Json, after: Json) -> None:
        was, is_now = (each["spec"].get("claimRef", {}).get("uid") for each in (before, after))
        if was and is_now and was != is_now:
            name = after["metadata"]["name"]
            self.violations.append(f"volume {name} was taken from {was} and given to {is_now}")

    def _claim_violations(self, pod: Json, name: str, node_name: str) -> Iterator[str]:
        """Violations of a pod's claim, unless it was re-created and may be seen as before."""
        claim = self._server.collection(CLAIMS).get((pod["metadata"]["namespace"], name))
        if claim is None or len(self._uids[name]) > 1:
            return
        subject = f"pod {pod['metadata']['uid']} was bound to {node_name}"
        volume = self._server.collection(VOLUMES).get(("", claim["spec"].get("volumeName", "")))
        if volume is None:
            yield f"{subject} before its claim {name} had a volume"
        elif not _reaches(volume, node_name):
            yield f"{subject}, out of reach of {volume['metadata']['name']}"

    def _limit_violations(self, pod: Json, node_name: str, foreign: set[str]) -> Iterator[str]:
        """Violation of the node's limit of volumes that our pods use or that are seen as attached.

        A volume that was on the node before adds nothing. A node whose driver was missing for a
        while had no limit then.
        """
        own = volume_of(self._server, pod)
        if not own or node_name in self._once_without_limit:
            return
        attached = self._attached_long_since(node_name)
        if own in attached or is_used(self._server, own, node_name, pod["metadata"]["uid"]):
            return
        used = {
            volume_of(self._server, other)
            for other in self._server.collection(PODS).values()
            if other["spec"].get("nodeName") == node_name
            and other["metadata"]["uid"] not in foreign
            and other["status"].get("phase") not in FINISHED
        }
        used = (used | attached) - {""}
        if len(used) > MAX_ATTACHED:
            beside = f", {len(attached)} of them attached" if attached else ""
            text = f"{len(used)} volumes of {DRIVER}, of at most {MAX_ATTACHED}{beside}"
            yield f"{node_name} has {text}"

    def _attached_long_since(self, node_name: str) -> set[str]:
        """Volumes attached so long ago, after the fault phase, that a scheduler must know it."""
        if self._now() < self._fault_rates.calm_since + RECOVERY_S:
            return set()
        volumes = self._server.collection(VOLUMES)
        names = {
            attachment["spec"]["source"]["persistentVolumeName"]
            for key, attachment in self._server.collection(ATTACHMENTS).items()
            if attachment["spec"]["nodeName"] == node_name
            and self._attached_at[key[1]] + SEEN_S < self._now()
        }
        return {name for name in names if ("", name) in volumes}


def _reaches(volume: Json, node_name: str) -> bool:
    affinity = volume["spec"].get("nodeAffinity")
    if affinity is None:
        return True
    (expression,) = affinity["required"]["nodeSelectorTerms"][0]["matchExpressions"]
    return expression["key"] == HOSTNAME and node_name in expression["values"]
