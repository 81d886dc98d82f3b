"""Lists of volumes and claims, and pods that use them."""

from __future__ import annotations

from stowage.api.reflected_kinds import STORAGE
from stowage_benchmarks.steps.shapes.shape import Shapes, Size, basic_cluster, pod
from stowage_benchmarks.steps.shell import MeasuredShell
from stowage_benchmarks.storage import bound_claims, using_claim
from stowage_benchmarks.workloads import NAMESPACE, Json

_VOLUMES = 50_000
_STORAGE_CLASS = "late"


def _bound(shell: MeasuredShell, size: Size) -> None:
    """Bound claims and their volumes come in lists, then a pod that uses one."""
    basic_cluster(shell, size)
    names = [f"p-{index}" for index in range(size.of(_VOLUMES))]
    objects = list(bound_claims(names, NAMESPACE))
    _list(shell, objects)
    shell.list_pods([pod("p-0", **using_claim("p-0"))])
    shell.schedule()


def _unbound(shell: MeasuredShell, size: Size) -> None:
    """A pod has an unbound claim, and each of the volumes is free and may be the one."""
    basic_cluster(shell, size)
    shell.list_objects(STORAGE[2], [_storage_class()])
    _list(shell, [_free_volume(index) for index in range(size.of(_VOLUMES))])
    _list(shell, [_waiting_claim("p")])
    shell.list_pods([pod("p", **using_claim("p"))])
    shell.schedule()


def _list(shell: MeasuredShell, objects: list[Json]) -> None:
    for kind in STORAGE[:2]:
        shell.list_objects(kind, [each for each in objects if each["kind"] == kind.kind])


def _storage_class() -> Json:
    return {
        "metadata": {"name": _STORAGE_CLASS, "resourceVersion": "1"},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def _free_volume(index: int) -> Json:
    return {
        "kind": "PersistentVolume",
        "metadata": {"name": f"pv-{index}", "resourceVersion": "1"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": f"{1 + index % 100}Gi"},
            "storageClassName": _STORAGE_CLASS,
            "local": {"path": "/disk"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [_on_node(index)]}},
        },
        "status": {"phase": "Available"},
    }


def _on_node(index: int) -> Json:
    name = f"node-{index % 5_000:05d}"
    expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": [name]}
    return {"matchExpressions": [expression]}


def _waiting_claim(name: str) -> Json:
    return {
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": NAMESPACE, "resourceVersion": "1"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "90Gi"}},
            "storageClassName": _STORAGE_CLASS,
        },
        "status": {"phase": "Pending"},
    }


STORAGE_SHAPES: Shapes = {
    "50,000 bound claims and volumes in lists": _bound,
    "50,000 local volumes, one unbound claim": _unbound,
}
