"""What must hold of claims and volumes at any time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.simulation.objects import DRIVER, HOSTNAME, MAX_ATTACHED
from tests.simulation.server import CLAIMS, PODS, VOLUMES, Change, Json, ModelServer
from tests.simulation.users import claim_of


class StorageAuditor:
    """Follows claims and volumes, and judges where pods are put.

    Attributes:
        violations: One sentence each.
    """

    def __init__(self, server: ModelServer) -> None:
        self.violations: list[str] = []
        self._server = server
        self._uids: defaultdict[str, set[str]] = defaultdict(set)
        server.subscribe(self._take)

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
            self.violations.extend(self._too_many_on(node_name, foreign))

    def _take(self, change: Change) -> None:
        if change.path == CLAIMS and change.after is not None:
            metadata = change.after["metadata"]
            self._uids[metadata["name"]].add(metadata["uid"])
            self._check_named_once(change.after)
        elif change.path == VOLUMES and change.after is not None and change.before is not None:
            self._check_not_taken(change.before, change.after)

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

    def _too_many_on(self, node_name: str, foreign: set[str]) -> Iterator[str]:
        """Volumes of the driver that pods of ours use there."""
        used: Counter[str] = Counter()
        for pod in self._server.collection(PODS).values():
            if pod["metadata"]["uid"] in foreign or pod["spec"].get("nodeName") != node_name:
                continue
            if pod["status"].get("phase") in ("Succeeded", "Failed") or not claim_of(pod):
                continue
            key = (pod["metadata"]["namespace"], claim_of(pod))
            claim = self._server.collection(CLAIMS).get(key, {"spec": {}})
            name = claim["spec"].get("volumeName", "")
            volume = self._server.collection(VOLUMES).get(("", name), {"spec": {}})
            if volume["spec"].get("csi", {}).get("driver") == DRIVER:
                used[name] += 1
        if len(used) > MAX_ATTACHED:
            yield f"{node_name} has {len(used)} volumes of {DRIVER}, of at most {MAX_ATTACHED}"


def _reaches(volume: Json, node_name: str) -> bool:
    affinity = volume["spec"].get("nodeAffinity")
    if affinity is None:
        return True
    (expression,) = affinity["required"]["nodeSelectorTerms"][0]["matchExpressions"]
    return expression["key"] == HOSTNAME and node_name in expression["values"]
