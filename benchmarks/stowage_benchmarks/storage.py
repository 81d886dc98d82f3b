"""Objects for pods with volumes: a bound claim per pod, and attach limits of nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]

DRIVER = "csi.example.com"
VOLUMES_PER_NODE = 39
_SIZE = "1Gi"


def using_claim(pod_name: str) -> Json:
    """The part of a pod's spec that mounts the claim with the pod's name."""
    source = {"persistentVolumeClaim": {"claimName": pod_name}}
    return {"volumes": [{"name": "data", **source}]}


def csi_node(node_name: str) -> Json:
    """The CSINode of a node, with its attach limit."""
    limit = {"count": VOLUMES_PER_NODE}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": node_name},
        "spec": {"drivers": [{"name": DRIVER, "nodeID": node_name, "allocatable": limit}]},
    }


def bound_claims(pod_names: Iterable[str], namespace: str) -> Iterator[Json]:
    """A bound claim and its volume for each pod."""
    for name in pod_names:
        yield {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"pv-{name}"},
            "spec": {
                "accessModes": ["ReadOnlyMany"],
                "capacity": {"storage": _SIZE},
                "persistentVolumeReclaimPolicy": "Retain",
                "csi": {"driver": DRIVER, "volumeHandle": f"vol-{name}"},
                "claimRef": {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "namespace": namespace,
                    "name": name,
                },
            },
        }
        yield {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
            },
            "spec": {
                "accessModes": ["ReadOnlyMany"],
                "resources": {"requests": {"storage": _SIZE}},
                "storageClassName": "",
                "volumeName": f"pv-{name}",
            },
        }
