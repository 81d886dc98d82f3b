"""The claims of StatefulSets' pods, kept or deleted by the retention policy."""

import copy
from collections.abc import Mapping

from simcluster.controllers.ownership import owner_reference, with_list
from simcluster.controllers.workloads.stateful_pods import Ordinals, claim_names
from simcluster.kinds.resources import PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS
from simcluster.store.registry import Registry
from simcluster.store.store import Stored


class StatefulClaims:
    """Creates claims from templates and sets who owns them.

    Args:
        registry: where claims are written.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def make(self, stored: Stored, pod_name: str) -> None:
        """Create the claims of one pod that do not exist yet."""
        names = claim_names(stored, pod_name)
        labels = (stored.obj["spec"].get("selector") or {}).get("matchLabels") or {}
        for template in stored.obj["spec"].get("volumeClaimTemplates") or ():
            name = names[template["metadata"]["name"]]
            if self._claim(stored.namespace, name) is not None:
                continue
            metadata = copy.deepcopy(template["metadata"])
            metadata |= {"name": name, "labels": {**(metadata.get("labels") or {}), **labels}}
            metadata.pop("creationTimestamp", None)
            if _policy(stored, "whenDeleted") == "Delete":
                metadata["ownerReferences"] = [owner_reference(STATEFUL_SETS, stored)]
            claim = {"metadata": metadata, "spec": copy.deepcopy(template["spec"])}
            self._registry.create(PERSISTENT_VOLUME_CLAIMS, stored.namespace, claim)

    def follow_policy(self, stored: Stored, pods: Mapping[int, Stored], ordinals: Ordinals) -> None:
        """Set the owners of claims by the policy: the set, or a pod that is scaled down."""
        if not stored.obj["spec"].get("volumeClaimTemplates"):
            return
        for ordinal, pod in pods.items():
            is_condemned = ordinal not in ordinals.wanted
            for name in claim_names(stored, pod.name).values():
                claim = self._claim(stored.namespace, name)
                if claim is not None:
                    self._set_owners(stored, pod, claim, is_condemned)

    def _set_owners(self, stored: Stored, pod: Stored, claim: Stored, is_condemned: bool) -> None:
        ours = {stored.obj["metadata"]["uid"], pod.obj["metadata"]["uid"]}
        before = claim.obj["metadata"].get("ownerReferences") or []
        references = [found for found in before if found["uid"] not in ours]
        if _policy(stored, "whenDeleted") == "Delete" and not (
            is_condemned and _policy(stored, "whenScaled") == "Delete"
        ):
            references.append(owner_reference(STATEFUL_SETS, stored))
        if is_condemned and _policy(stored, "whenScaled") == "Delete":
            references.append(
                {
                    key: value
                    for key, value in owner_reference(PODS, pod).items()
                    if key not in {"controller", "blockOwnerDeletion"}
                }
            )
        if references == before:
            return
        obj = with_list(claim, "ownerReferences", references)
        self._registry.replace(PERSISTENT_VOLUME_CLAIMS, claim, obj)

    def _claim(self, namespace: str, name: str) -> Stored | None:
        return self._registry.store.get(PERSISTENT_VOLUME_CLAIMS.stored_in, namespace, name)


def _policy(stored: Stored, when: str) -> str:
    policy = stored.obj["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    return str(policy.get(when, "Retain"))
