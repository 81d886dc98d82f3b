"""Claims and volumes over HTTP, and what a controller of volumes does to them."""

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
LOCAL, MADE = "local", "made"


def storage_class(name: str, provisioner: str) -> Json:
    """A class whose claims wait for their pod."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def claim(name: str, class_name: str = MADE, size: str = "1Gi") -> Json:
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
    """A volume that only one node can reach."""
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


def using(*claims: str) -> list[Json]:
    """The volumes of a pod that uses these claims."""
    return [
        {"name": f"v{number}", "persistentVolumeClaim": {"claimName": name}}
        for number, name in enumerate(claims)
    ]


class VolumeController:
    """Does by request what a controller and a provisioner would do of themselves.

    Args:
        api: Of the API server.
    """

    def __init__(self, api: ApiClient) -> None:
        self._api = api

    async def add_classes(self) -> None:
        """One class of local volumes, one whose volumes are made."""
        await self._api.create(CLASSES, storage_class(LOCAL, "kubernetes.io/no-provisioner"))
        await self._api.create(CLASSES, storage_class(MADE, "csi.example.com"))

    async def add_volume(self, body: Json) -> None:
        """A volume that is there to be had."""
        name = (await self._api.create(VOLUMES, body))["metadata"]["name"]
        await self._set_status(f"{VOLUMES}/{name}", {"phase": "Available"})

    async def add_claim(self, body: Json) -> None:
        """A claim that waits."""
        await self._api.create(CLAIMS, body)

    async def claim_on_node(self, name: str) -> str:
        """The node a claim is sent to, as soon as it is."""
        found = await self._seen(f"{CLAIMS}/{name}", lambda obj: bool(_selected(obj)))
        return _selected(found)

    async def claim_of_volume(self, name: str) -> str:
        """The claim a volume is given to, as soon as it is."""

        def is_given(found: Json) -> bool:
            return bool((found["spec"].get("claimRef") or {}).get("uid"))

        found = await self._seen(f"{VOLUMES}/{name}", is_given)
        return str(found["spec"]["claimRef"]["name"])

    async def first_given(self, *names: str) -> str:
        """Which of some volumes is given to a claim, as soon as one is."""
        async with asyncio.timeout(WAIT_TIMEOUT_S):
            while True:
                for name in names:
                    found = (await self._api.get(f"{VOLUMES}/{name}")).body
                    if (found["spec"].get("claimRef") or {}).get("uid"):
                        return name
                await asyncio.sleep(0.02)

    async def provision(self, claim_name: str) -> None:
        """Make the volume of a claim on the node it was sent to, and bind both."""
        node_name = await self.claim_on_node(claim_name)
        found = (await self._api.get(f"{CLAIMS}/{claim_name}")).body
        body = volume(f"made-for-{claim_name}", node_name, MADE)
        body["spec"]["claimRef"] = reference_to(found)
        await self._api.create(VOLUMES, body)
        await self.bind(claim_name, f"made-for-{claim_name}")

    async def give_up(self, claim_name: str) -> None:
        """Fail to make a volume: another node is to be tried."""
        await self.claim_on_node(claim_name)
        change = {"metadata": {"annotations": {SELECTED_NODE: None}}}
        await self._patch(f"{CLAIMS}/{claim_name}", change)

    async def bind(self, claim_name: str, volume_name: str) -> None:
        """Complete what the scheduler has begun."""
        change = {
            "metadata": {"annotations": {BIND_COMPLETED: "yes"}},
            "spec": {"volumeName": volume_name},
        }
        await self._set_status(f"{VOLUMES}/{volume_name}", {"phase": "Bound"})
        await self._patch(f"{CLAIMS}/{claim_name}", change)
        await self._set_status(f"{CLAIMS}/{claim_name}", {"phase": "Bound"})

    async def give(self, volume_name: str, claim_name: str) -> None:
        """Give a volume to a claim, as another scheduler might."""
        found = (await self._api.get(f"{CLAIMS}/{claim_name}")).body
        taken = (await self._api.get(f"{VOLUMES}/{volume_name}")).body
        taken["spec"]["claimRef"] = reference_to(found)
        reply = await self._api.put(f"{VOLUMES}/{volume_name}", taken)
        assert reply.status == 200, reply.text
        await self.bind(claim_name, volume_name)

    async def has_failed(self, pod: str, text: str) -> None:
        """Wait until a pod's condition says so."""

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
    """What a volume says of the claim it is given to."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": "default",
        "name": found["metadata"]["name"],
        "uid": found["metadata"]["uid"],
    }


def _selected(found: Json) -> str:
    return str((found["metadata"].get("annotations") or {}).get(SELECTED_NODE, ""))
