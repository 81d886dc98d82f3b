"""Makes the claims of devices that pods ask for by a template.

The first half of kube-controller-manager's ``resourceclaim`` controller.
"""

import copy

from simcluster.apiserver.errors import ApiError
from simcluster.controllers.devices.references import (
    MAX_CONSUMERS,
    device_claim_name,
    device_claims_of,
    is_made_for,
    is_reserved_for,
    uses_device_claims,
)
from simcluster.controllers.indexes import KeyedIndex
from simcluster.controllers.ownership import is_finished, owner_reference
from simcluster.controllers.reconciler import Key, Reconciler, key_of
from simcluster.kinds.resources import PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from simcluster.store.store import Change, Stored
from simcluster.values import Json

POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
RETRY_AFTER_S = 5.0
_SOURCE = "resource_claim"
_MAX_PREFIX = 57


class _NotMadeError(Exception):
    """A claim cannot be made; ``template`` is set if its template is missing."""

    def __init__(self, why: str, template: str = "") -> None:
        super().__init__(why)
        self.template = template


def _claim_keys(pod: Stored) -> list[Key]:
    if not uses_device_claims(pod):
        return []
    return [Key(pod.namespace, name) for name in device_claims_of(pod.obj)]


class PodDeviceClaimController(Reconciler):
    """Makes claims from templates, and reserves allocated claims for pods without a scheduler.

    The name of a made claim goes into the pod's ``status.resourceClaimStatuses``.
    """

    def follow(self) -> None:
        """Follow pods, claims and templates."""
        self._owned = self.shared.owned(RESOURCE_CLAIMS)
        self._pods: KeyedIndex[Key] = KeyedIndex(_claim_keys)
        self._lacking: dict[Key, dict[Key, None]] = {}
        """Pods by the template that they lack."""
        self.subscribe(PODS, self._on_pod)
        self.subscribe(RESOURCE_CLAIMS, self._on_claim)
        self.subscribe(RESOURCE_CLAIM_TEMPLATES, self._on_template)
        for pod in self.store.collection(PODS.stored_in):
            self._pods.add(pod)
            if uses_device_claims(pod):
                self.enqueue(Key(pod.namespace, pod.name))

    def _on_pod(self, change: Change) -> None:
        self._pods.see(change)
        if change.type != "DELETED" and uses_device_claims(change.current):
            self.enqueue(key_of(change))

    def _on_claim(self, change: Change) -> None:
        for pod in self._pods.of(key_of(change)):
            self.enqueue(Key(pod.namespace, pod.name))

    def _on_template(self, change: Change) -> None:
        if change.type == "ADDED":
            for key in self._lacking.pop(key_of(change), {}):
                self.enqueue(key)

    def reconcile(self, key: Key) -> None:
        """Make the claims that a pod lacks; reserve those it may use if it is bound."""
        pod = self.find(PODS, *key)
        if pod is None or pod.is_terminating or is_finished(pod):
            return
        entries = pod.spec.get("resourceClaims") or ()
        try:
            made = {entry["name"]: self._made(pod, entry) for entry in entries}
        except _NotMadeError as error:
            recorder = self.shared.recorder
            recorder.warning(_SOURCE, PODS, pod, "FailedResourceClaimCreation", str(error))
            if error.template:
                self._lacking.setdefault(Key(key.namespace, error.template), {})[key] = None
            else:
                self.enqueue_after(key, RETRY_AFTER_S)
            return
        self._report(pod, {entry: name for entry, name in made.items() if name})
        if pod.spec.get("nodeName"):
            self._reserve(pod)

    def _made(self, pod: Stored, entry: Json) -> str:
        """The name of the claim that was made for an entry just now or before; or nothing to do.

        Raises:
            _NotMadeError: the claim cannot be made.
        """
        template_name = entry.get("resourceClaimTemplateName")
        if not template_name:
            return ""
        name = device_claim_name(pod.obj, entry)
        claim = self.find(RESOURCE_CLAIMS, pod.namespace, name) if name else None
        if name == "" or (claim is not None and is_made_for(claim, pod)):
            return ""
        for owned in self._owned.owned_by(pod):
            if owned.annotations.get(POD_CLAIM_NAME) == entry["name"]:
                return owned.name
        return self._make(pod, entry, template_name)

    def _make(self, pod: Stored, entry: Json, template_name: str) -> str:
        prefix = f"PodResourceClaim {entry['name']}:"
        template = self.find(RESOURCE_CLAIM_TEMPLATES, pod.namespace, template_name)
        if template is None:
            missing = f'resourceclaimtemplate.resource.k8s.io "{template_name}" not found'
            why = f'{prefix} resource claim template "{template_name}": {missing}'
            raise _NotMadeError(why, template_name)
        try:
            claim = _claim_from(template, pod, entry["name"])
            return self.registry.create(RESOURCE_CLAIMS, pod.namespace, claim).name
        except ApiError as error:
            raise _NotMadeError(f"{prefix} create ResourceClaim : {error.message}") from error

    def _report(self, pod: Stored, made: dict[str, str]) -> None:
        """Write the names of made claims into the pod's status."""
        if not made:
            return

        def with_names(current: Json) -> Json:
            known = current["status"].get("resourceClaimStatuses") or ()
            kept = [found for found in known if found["name"] not in made]
            fresh = [{"name": each, "resourceClaimName": name} for each, name in made.items()]
            return {**current["status"], "resourceClaimStatuses": [*kept, *fresh]}

        self.registry.change_status(PODS, pod.namespace, pod.name, with_names)

    def _reserve(self, pod: Stored) -> None:
        """Reserve the allocated claims of a bound pod, which no scheduler has reserved."""
        consumer = {"resource": "pods", "name": pod.name, "uid": pod.uid}
        for name in device_claims_of(pod.obj):
            claim = self.find(RESOURCE_CLAIMS, pod.namespace, name)
            if claim is None or "allocation" not in claim.status or is_reserved_for(claim, pod):
                continue
            reserved = claim.status.get("reservedFor") or []
            if len(reserved) < MAX_CONSUMERS and not claim.is_terminating:
                self._add_consumer(claim, consumer)

    def _add_consumer(self, claim: Stored, consumer: Json) -> None:
        reserved = claim.status.get("reservedFor") or []
        status = {**claim.status, "reservedFor": [*reserved, consumer]}
        self.registry.change_status(
            RESOURCE_CLAIMS, claim.namespace, claim.name, lambda _claim: status
        )


def _claim_from(template: Stored, pod: Stored, entry: str) -> Json:
    spec = copy.deepcopy(template.spec)
    given = spec.get("metadata") or {}
    metadata: Json = {
        "generateName": _name_prefix(pod.name, entry),
        "annotations": {**(given.get("annotations") or {}), POD_CLAIM_NAME: entry},
        "ownerReferences": [owner_reference(PODS, pod)],
    }
    if given.get("labels"):
        metadata["labels"] = given["labels"]
    return {"metadata": metadata, "spec": spec["spec"]}


def _name_prefix(pod: str, entry: str) -> str:
    """``<pod>-<entry>-``; both are cut in proportion if they are too long together."""
    prefix = f"{pod}-{entry}-"
    if len(prefix) <= _MAX_PREFIX:
        return prefix
    cut = [part[: len(part) * _MAX_PREFIX // len(prefix)] for part in (pod, entry)]
    return "-".join(cut)
