"""Claims and volumes, and a volume controller that the tests run by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from simcluster.tests.support.api_client import MERGE, PODS, ApiClient
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S

Json = dict[str, Any]

CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
CSI_NODES = "/apis/storage.k8s.io/v1/csinodes"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
HOSTNAME = "kubernetes.io/hostname"
LOCAL, PROVISIONED = "local", "provisioned"


def storage_class(name: str, provisioner: str) -> Json:
    """A StorageClass with binding mode WaitForFirstConsumer."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def claim(name: str, class_name: str = PROVISIONED, size: str = "1Gi") -> Json:
    """A claim of a class."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}},
            "storageClassName": class_name,
        },
    }


def volume(name: str, node_name: str, class_name: str = LOCAL, size: str = "1Gi") -> Json:
    """A volume with node affinity to one node."""
    host = {"key": HOSTNAME, "operator": "In", "values": [node_name]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": size},
            "storageClassName": class_name,
            "persistentVolumeReclaimPolicy": "Retain",
            "csi": {"driver": "csi.example.com", "volumeHandle": name},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [host]}]}},
        },
    }


def claim_volumes(*claims: str) -> list[Json]:
    """The `volumes` field of a pod that uses these claims."""
    return [
        {"name": f"v{number}", "persistentVolumeClaim": {"claimName": name}}
        for number, name in enumerate(claims)
    ]


class VolumeController:
    """Does on request what the volume controller and a provisioner do by themselves.

    Args:
        api: A client of the API server.
    """

    def __init__(self, api: ApiClient) -> None:
        self._api = api

    async def add_classes(self) -> None:
        """Create a class of local volumes and one with dynamic provisioning."""
        await self._api.create(CLASSES, storage_class(LOCAL, "kubernetes.io/no-provisioner"))
        await self._api.create(CLASSES, storage_class(PROVISIONED, "csi.example.com"))

    async def add_volume(self, body: Json) -> None:
        """Create a volume in phase Available."""
        name = (await self._api.create(VOLUMES, body))["metadata"]["name"]
        await self._set_status(f"{VOLUMES}/{name}", {"phase": "Available"})

    async def add_claim(self, body: Json) -> None:
        """Create a claim."""
        await self._api.create(CLAIMS, body)

    async def claim_on_node(self, name: str) -> str:
        """Wait until a claim has a selected node; returns its name."""
        found = await self._seen(f"{CLAIMS}/{name}", lambda obj: bool(_selected(obj)))
        return _selected(found)

    async def claim_of_volume(self, name: str) -> str:
        """Wait until a volume has a claim reference; returns the claim's name."""

        def has_claim(found: Json) -> bool:
            return bool((found["spec"].get("claimRef") or {}).get("uid"))

        found = await self._seen(f"{VOLUMES}/{name}", has_claim)
        return str(found["spec"]["claimRef"]["name"])

    async def first_with_claim(self, *names: str) -> str:
        """Wait until one of the volumes has a claim reference; returns the volume's name."""
        async with asyncio.timeout(WAIT_TIMEOUT_S):
            while True:
                for name in names:
                    found = (await self._api.get(f"{VOLUMES}/{name}")).body
                    if (found["spec"].get("claimRef") or {}).get("uid"):
                        return name
                await asyncio.sleep(0.02)

    async def provision(self, claim_name: str) -> None:
        """Create the volume of a claim on its selected node, and bind both."""
        node_name = await self.claim_on_node(claim_name)
        found = (await self._api.get(f"{CLAIMS}/{claim_name}")).body
        body = volume(f"provisioned-for-{claim_name}", node_name, PROVISIONED)
        body["spec"]["claimRef"] = reference_to(found)
        await self._api.create(VOLUMES, body)
        await self.bind(claim_name, f"provisioned-for-{claim_name}")

    async def fail_provisioning(self, claim_name: str) -> None:
        """Remove the selected node of a claim, as a provisioner does that fails."""
        await self.claim_on_node(claim_name)
        change = {"metadata": {"annotations": {SELECTED_NODE: None}}}
        await self._patch(f"{CLAIMS}/{claim_name}", change)

    async def bind(self, claim_name: str, volume_name: str) -> None:
        """Bind a claim and a volume that the scheduler has chosen for each other."""
        change = {
            "metadata": {"annotations": {BIND_COMPLETED: "yes"}},
            "spec": {"volumeName": volume_name},
        }
        await self._set_status(f"{VOLUMES}/{volume_name}", {"phase": "Bound"})
        await self._patch(f"{CLAIMS}/{claim_name}", change)
        await self._set_status(f"{CLAIMS}/{claim_name}", {"phase": "Bound"})

    async def claim_for_another(self, volume_name: str, claim_name: str) -> None:
        """Bind a volume to a claim, as another scheduler might."""
        found = (await self._api.get(f"{CLAIMS}/{claim_name}")).body
        taken = (await self._api.get(f"{VOLUMES}/{volume_name}")).body
        taken["spec"]["claimRef"] = reference_to(found)
        reply = await self._api.put(f"{VOLUMES}/{volume_name}", taken)
        assert reply.status == 200, reply.text
        await self.bind(claim_name, volume_name)

    async def has_failed(self, pod: str, text: str) -> None:
        """Wait until a condition of a pod has this text in its message."""

        def says_so(found: Json) -> bool:
            conditions = found["status"].get("conditions") or ()
            return any(text in each.get("message", "") for each in conditions)

        await self._seen(f"{PODS}/{pod}", says_so)

    async def _seen(self, path: str, holds: Callable[[Json], bool]) -> Json:
        async with asyncio.timeout(WAIT_TIMEOUT_S):
            while not holds(found := (await self._api.get(path)).body):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        return found

    async def _patch(self, path: str, change: Json) -> None:
        reply = await self._api.patch(path, change, MERGE)
        assert reply.status == 200, reply.text

    async def _set_status(self, path: str, status: Json) -> None:
        await self._patch(f"{path}/status", {"status": status})


def reference_to(found: Json) -> Json:
    """A volume's reference to a claim."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": "default",
        "name": found["metadata"]["name"],
        "uid": found["metadata"]["uid"],
    }


def _selected(found: Json) -> str:
    return str((found["metadata"].get("annotations") or {}).get(SELECTED_NODE, ""))
