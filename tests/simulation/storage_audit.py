"""What must hold of claims and volumes at any time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

from tests.simulation.attachments import is_used, volume_of
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
from tests.simulation.true_reasons import FINISHED
from tests.simulation.users import claim_of
from tests.simulation.weather import RECOVERY_S, Weather

SEEN_S = 10.0
"""How soon an attachment is known to the scheduler when nothing goes wrong."""


class StorageAuditor:
    """Follows claims and volumes, and judges where pods are put.

    Attributes:
        violations: One sentence each.
    """

    def __init__(self, server: ModelServer, weather: Weather, now: Callable[[], float]) -> None:
        self.violations: list[str] = []
        self._server = server
        self._weather = weather
        self._now = now
        self._attached_at: dict[str, float] = {}
        self._once_without_limit: set[str] = set()
        self._uids: defaultdict[str, set[str]] = defaultdict(set)
        server.subscribe(self._take, CLAIMS, VOLUMES, CSI_NODES, ATTACHMENTS)

    def check_placed(self, pod: Json, node_name: str, foreign: set[str]) -> None:
        """Judge a pod that the scheduler has just put on a node.

        Args:
            pod: As it is stored.
            node_name: Where it is.
            foreign: UIDs of pods that others placed, for which the scheduler does not answer.
        """
        name = claim_of(pod)
        if name:
            self.violations.extend(self._wrong_with(pod, name, node_name))
            self.violations.extend(self._too_many_on(pod, node_name, foreign))

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

    def _wrong_with(self, pod: Json, name: str, node_name: str) -> Iterator[str]:
        """Who was re-created may have been seen bound when it was another one."""
        claim = self._server.collection(CLAIMS).get((pod["metadata"]["namespace"], name))
        if claim is None or len(self._uids[name]) > 1:
            return
        subject = f"pod {pod['metadata']['uid']} was bound to {node_name}"
        volume = self._server.collection(VOLUMES).get(("", claim["spec"].get("volumeName", "")))
        if volume is None:
            yield f"{subject} before its claim {name} had a volume"
        elif not _reaches(volume, node_name):
            yield f"{subject}, out of reach of {volume['metadata']['name']}"

    def _too_many_on(self, pod: Json, node_name: str, foreign: set[str]) -> Iterator[str]:
        """Volumes of the driver that pods of ours use there, or that are attached for all to see.

        A volume that is there already is no more of a burden; a node that the driver was not on
        for a while has had no limit.
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
        """Volumes whose attachment a scheduler must have seen, after the storm."""
        if self._now() < self._weather.calm_since + RECOVERY_S:
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
