"""Random API objects with missing fields, fields of a wrong type, and values out of bounds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from random import Random
from typing import Any

from tests.fuzz import texts
from tests.fuzz.mutations import spoil

_TERM = {
    "topologyKey": "topology.kubernetes.io/zone",
    "labelSelector": {
        "matchLabels": {"app": "web"},
        "matchExpressions": [{"key": "tier", "operator": "In", "values": ["front", "back"]}],
    },
    "namespaces": ["default"],
    "namespaceSelector": {"matchLabels": {"team": "a"}},
    "matchLabelKeys": ["pod-template-hash"],
}
_NODE_TERM = {
    "matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["4"]}],
    "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n0"]}],
}
_METADATA = {
    "name": "odd",
    "namespace": "default",
    "uid": "uid-odd",
    "resourceVersion": "7",
    "generation": 1,
    "labels": {"app": "web", "pod-template-hash": "abc"},
    "annotations": {"note": "text"},
    "creationTimestamp": "2026-01-01T00:00:00Z",
    "ownerReferences": [
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": "web",
            "uid": "u",
            "controller": True,
        }
    ],
}
_RESOURCES = {
    "requests": {"cpu": "100m", "memory": "1Gi"},
    "limits": {"cpu": 1, "example.com/gpu": "2"},
}
_POD: dict[str, Any] = {
    "metadata": _METADATA,
    "spec": {
        "schedulerName": "default-scheduler",
        "priority": 10,
        "preemptionPolicy": "PreemptLowerPriority",
        "nodeSelector": {"disk": "ssd"},
        "containers": [
            {
                "name": "c",
                "image": "registry.k8s.io/pause",
                "resources": _RESOURCES,
                "ports": [
                    {
                        "containerPort": 80,
                        "hostPort": 8080,
                        "hostIP": "127.0.0.1",
                        "protocol": "TCP",
                    }
                ],
            }
        ],
        "initContainers": [{"name": "i", "restartPolicy": "Always", "resources": _RESOURCES}],
        "overhead": {"cpu": "10m"},
        "resources": _RESOURCES,
        "tolerations": [
            {
                "key": "k",
                "operator": "Equal",
                "value": "v",
                "effect": "NoSchedule",
                "tolerationSeconds": 3,
            }
        ],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [_NODE_TERM]
                },
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 5, "preference": _NODE_TERM}
                ],
            },
            "podAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [_TERM],
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 5, "podAffinityTerm": _TERM}
                ],
            },
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_TERM]},
        },
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "minDomains": 2,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "web"}},
                "nodeAffinityPolicy": "Honor",
                "nodeTaintsPolicy": "Ignore",
                "matchLabelKeys": ["pod-template-hash"],
            }
        ],
        "schedulingGates": [],
        "volumes": [
            {"name": "v", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "e", "emptyDir": {}},
        ],
        "hostNetwork": False,
    },
    "status": {
        "phase": "Pending",
        "conditions": [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}],
        "containerStatuses": [
            {"name": "c", "allocatedResources": {"cpu": "1"}, "resources": _RESOURCES}
        ],
        "nominatedNodeName": "n0",
    },
}
_NODE: dict[str, Any] = {
    "metadata": {
        **_METADATA,
        "labels": {"topology.kubernetes.io/zone": "a", "disk": "ssd", "cores": "8"},
    },
    "spec": {
        "unschedulable": False,
        "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}],
    },
    "status": {
        "allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110", "example.com/gpu": "4"},
        "capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"},
        "images": [{"names": ["registry.k8s.io/pause"], "sizeBytes": 1000}],
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}
_SELECTED = {"selector": {"matchLabels": {"app": "web"}}}
_CLUSTER_WIDE = {name: value for name, value in _METADATA.items() if name != "namespace"}
SAMPLES: dict[str, dict[str, Any]] = {
    "Pod": _POD,
    "Node": _NODE,
    "Namespace": {"metadata": _METADATA},
    "Service": {"metadata": _METADATA, "spec": {"selector": {"app": "web"}}},
    "ReplicationController": {"metadata": _METADATA, "spec": {"selector": {"app": "web"}}},
    "ReplicaSet": {"metadata": _METADATA, "spec": _SELECTED},
    "StatefulSet": {"metadata": _METADATA, "spec": _SELECTED},
    "PersistentVolume": {
        "metadata": _CLUSTER_WIDE,
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "fast",
            "claimRef": {"namespace": "default", "name": "data", "uid": "u"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [_NODE_TERM]}},
            "csi": {"driver": "disk.example.com", "volumeHandle": "h"},
        },
        "status": {"phase": "Available"},
    },
    "PersistentVolumeClaim": {
        "metadata": {**_METADATA, "name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "fast",
            "volumeName": "odd",
            "resources": {"requests": {"storage": "1Gi"}},
            "selector": {"matchLabels": {"app": "web"}},
        },
        "status": {"phase": "Bound"},
    },
    "StorageClass": {
        "metadata": {**_CLUSTER_WIDE, "name": "fast"},
        "provisioner": "disk.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}],
    },
    "CSINode": {
        "metadata": {**_CLUSTER_WIDE, "name": "n0"},
        "spec": {
            "drivers": [{"name": "disk.example.com", "nodeID": "n0", "allocatable": {"count": 4}}]
        },
    },
    "VolumeAttachment": {
        "metadata": _CLUSTER_WIDE,
        "spec": {
            "attacher": "disk.example.com",
            "nodeName": "n0",
            "source": {"persistentVolumeName": "odd"},
        },
    },
    "PodDisruptionBudget": {
        "metadata": _METADATA,
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": 1, "disruptedPods": {"p": "2026-01-01T00:00:00Z"}},
    },
}
_KINDS = (*SAMPLES, "Pod", "Pod", "Pod", "Pod", "Pod", "Node", "Node")


def odd_object(rng: Random) -> tuple[str, bytes]:
    """A kind, and the JSON of an object of it with some faults."""
    kind = rng.choice(_KINDS)
    value = deepcopy(SAMPLES[kind])
    if kind == "Pod" and rng.random() < 0.5:
        value["spec"]["nodeName"] = rng.choice(("n0", "n1", "gone"))
    if rng.random() < 0.8:
        value["metadata"]["uid"] = f"uid-{rng.randrange(50)}"
    if rng.random() < 0.2:
        value["metadata"]["ownerReferences"] = list(_owners(rng))
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3, 10))):
        spoil(value, rng, [texts.label_selector(rng)[:40]], [texts.quantity(rng)])
    data = json.dumps(value, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")
    return kind, _spoilt_bytes(data, rng)


def _owners(rng: Random) -> Iterator[dict[str, Any]]:
    """Owners among the objects made so far: some objects own each other or themselves."""
    for _ in range(rng.choice((1, 1, 2, 20))):
        yield {
            "apiVersion": rng.choice(("v1", "apps/v1", "batch/v1", "")),
            "kind": rng.choice(_KINDS),
            "name": "odd",
            "uid": f"uid-{rng.randrange(50)}",
            "controller": rng.choice((True, True, False, None)),
            "blockOwnerDeletion": rng.random() < 0.5,
        }


def _spoilt_bytes(data: bytes, rng: Random) -> bytes:
    """The JSON; one of twenty is cut, has a changed byte, or nests too deep."""
    match rng.randrange(80):
        case 0:
            return data[: rng.randrange(len(data))]
        case 1 | 2:
            place = rng.randrange(len(data))
            return data[:place] + bytes([rng.randrange(256)]) + data[place + 1 :]
        case 3:
            depth = rng.choice((10, 500, 100_000))
            return data.replace(b'"text"', b"[" * depth + b"]" * depth)
        case _:
            return data
