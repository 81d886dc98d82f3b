"""Ephemeral volumes: a claim for each, which is owned by the pod."""

import copy

from simcluster.controllers.ownership import is_terminating, owner_reference
from simcluster.controllers.reconciler import Key, Reconciler, key_of
from simcluster.kinds.resources import PERSISTENT_VOLUME_CLAIMS, PODS
from simcluster.store.store import Change, Stored
from simcluster.values import Json

_SOURCE = "ephemeral_volume"


class EphemeralVolumeController(Reconciler):
    """Creates the claims of pods' ephemeral volumes."""

    def follow(self) -> None:
        """Follow pods."""
        self.subscribe(PODS, self._on_pod)
        for pod in self.store.collection(PODS.stored_in):
            if b'"ephemeral"' in pod.content and _ephemeral(pod):
                self.enqueue(Key(pod.namespace, pod.name))

    def _on_pod(self, change: Change) -> None:
        if change.type == "ADDED" and _ephemeral(change.current):
            self.enqueue(key_of(change))

    def reconcile(self, key: Key) -> None:
        """Create missing claims; warn of a claim of that name that the pod does not own."""
        pod = self.find(PODS, *key)
        if pod is None or is_terminating(pod):
            return
        for volume in _ephemeral(pod):
            name = f"{pod.name}-{volume['name']}"
            claim = self.find(PERSISTENT_VOLUME_CLAIMS, key.namespace, name)
            if claim is None:
                self._make(pod, name, volume["ephemeral"]["volumeClaimTemplate"])
            elif not _is_owned(claim, pod):
                why = f'PVC "{key.namespace}/{name}" was not created for pod "{key.namespace}/'
                why += f'{pod.name}" (pod is not owner)'
                recorder = self.shared.recorder
                recorder.warning(_SOURCE, PODS, pod, "FailedBinding", f"ephemeral volume: {why}")

    def _make(self, pod: Stored, name: str, template: Json) -> None:
        metadata = copy.deepcopy(template.get("metadata") or {})
        metadata |= {"name": name, "ownerReferences": [owner_reference(PODS, pod)]}
        claim = {"metadata": metadata, "spec": copy.deepcopy(template["spec"])}
        self.registry.create(PERSISTENT_VOLUME_CLAIMS, pod.namespace, claim)


def _ephemeral(pod: Stored) -> list[Json]:
    return [volume for volume in pod.obj["spec"].get("volumes") or () if "ephemeral" in volume]


def _is_owned(claim: Stored, pod: Stored) -> bool:
    references = claim.obj["metadata"].get("ownerReferences") or ()
    return any(found["uid"] == pod.obj["metadata"]["uid"] for found in references)
