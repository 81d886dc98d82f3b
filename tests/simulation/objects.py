"""API objects of the simulated cluster."""

from __future__ import annotations

import random

from tests.simulation.server import Json

SCHEDULER_NAME = "stowage"
SECOND_NAME = "stowage-packing"
"""Scheduler name of a profile that only some configurations have."""

NAMESPACE, SECOND_NAMESPACE = "default", "other"
"""All claims are in the first one."""
NODE_CPUS = 4
MAX_NODE_CPUS = 8
HOSTNAME = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
DRIVER = "csi.example.com"
MAX_ATTACHED = 3
TROUBLE = "trouble"
"""Key of the taints that users add and remove."""
GADGET = "example.com/gadget"
"""A resource that only an extender manages."""
RACK = "example.com/rack"
RACKS = ("rack-0", "rack-1")
TEAMS = ("red", "blue")
"""Values of the namespace label."""
LOCAL, FAST, AT_ONCE = "local", "fast", "at-once"
"""StorageClasses: pre-provisioned and provisioned volumes, bound late; volumes bound at once."""


def make_node(name: str, cpus: int = NODE_CPUS) -> Json:
    """A node; those with numbers are in one of two racks."""
    allocatable = {"cpu": str(cpus), "memory": "8Gi", "pods": "10"}
    rack = {RACK: RACKS[int(name[-1]) % 2]} if name[-1].isdigit() else {}
    return {
        "metadata": {"name": name, "labels": {HOSTNAME: name, **rack}},
        "spec": {},
        "status": {"allocatable": allocatable, "capacity": allocatable},
    }


def make_namespace(name: str, team: str) -> Json:
    """A namespace."""
    return {"metadata": {"name": name, "labels": {"team": team}}}


def make_attachment(volume_name: str, node_name: str) -> Json:
    """A volume attached to a node."""
    source = {"persistentVolumeName": volume_name}
    return {
        "metadata": {"name": f"{volume_name}-at-{node_name}"},
        "spec": {"attacher": DRIVER, "nodeName": node_name, "source": source},
    }


def make_csi_node(name: str) -> Json:
    """A CSINode with the driver's volume limit."""
    driver = {"name": DRIVER, "nodeID": name, "allocatable": {"count": MAX_ATTACHED}}
    return {"metadata": {"name": name}, "spec": {"drivers": [driver]}}


def make_classes() -> list[Json]:
    """All StorageClasses."""
    provisioners = {LOCAL: "kubernetes.io/no-provisioner", FAST: DRIVER, AT_ONCE: DRIVER}
    return [
        {
            "metadata": {"name": name},
            "provisioner": provisioner,
            "volumeBindingMode": "Immediate" if name == AT_ONCE else "WaitForFirstConsumer",
        }
        for name, provisioner in provisioners.items()
    ]


def make_volume(name: str, class_name: str, node_name: str = "", claim: Json | None = None) -> Json:
    """A volume that one node or all nodes can reach, pre-bound to a claim or free."""
    source: Json = {"local": {"path": "/mnt"}}
    if class_name != LOCAL:
        source = {"csi": {"driver": DRIVER, "volumeHandle": name}}
    spec: Json = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": class_name,
        **source,
    }
    if node_name:
        term = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [node_name]}]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    if claim is not None:
        spec["claimRef"] = reference_to(claim)
    return {"metadata": {"name": name}, "spec": spec, "status": {"phase": "Available"}}


def reference_to(claim: Json) -> Json:
    """The ``spec.claimRef`` of a claim."""
    metadata = claim["metadata"]
    return {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        **{name: metadata[name] for name in ("namespace", "name", "uid")},
    }


def make_claim(name: str, class_name: str) -> Json:
    """A claim without a volume."""
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": class_name,
    }
    metadata = {"namespace": "default", "name": name}
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}


def claimed_volume(claim: str) -> Json:
    """The volume of a pod for a claim."""
    return {"name": "data", "persistentVolumeClaim": {"claimName": claim}}


def make_pod(
    name: str, cpu: str, *, scheduler_name: str = SCHEDULER_NAME, claim: str = "", **spec: object
) -> Json:
    """A pending pod."""
    requests = {"cpu": cpu}
    whole: Json = {
        "schedulerName": scheduler_name,
        "priority": 0,
        "containers": [{"name": "main", "resources": {"requests": requests}}],
        **spec,
    }
    if claim:
        whole["volumes"] = [claimed_volume(claim)]
    metadata = {"namespace": "default", "name": name, "labels": {"app": "probe"}}
    return {"metadata": metadata, "spec": whole, "status": {"phase": "Pending"}}


def draw_pod(rng: random.Random, name: str, claim: str = "") -> Json:
    """A random pod: large or small, with a priority, a gate, affinity terms, or a slow Permit."""
    drawn = _draw_spec(rng)
    app = rng.choice("ab")
    if rng.random() < 0.15:
        drawn["affinity"] = {"podAntiAffinity": {REQUIRED: [_draw_term(rng, app)]}}
    elif rng.random() < 0.15:
        constraint = {"maxSkew": 2, "whenUnsatisfiable": "DoNotSchedule", **_term(app)}
        drawn["topologySpreadConstraints"] = [constraint]
    scheduler_name = SECOND_NAME if rng.random() < 0.1 else SCHEDULER_NAME
    cpu = rng.choice(("500m", "1", "1", "2", "3"))
    pod = make_pod(name, cpu, scheduler_name=scheduler_name, claim=claim, **drawn)
    metadata = pod["metadata"]
    metadata["labels"]["app"] = app
    if not claim and rng.random() < 0.2:
        metadata["namespace"] = SECOND_NAMESPACE
    if rng.random() < 0.15:
        metadata["labels"]["permit"] = rng.choice(("allow", "reject", "forget"))
    return pod


def _draw_spec(rng: random.Random) -> Json:
    spec: Json = {"priority": rng.choice((0, 0, 0, 10, 100))}
    if rng.random() < 0.1:
        spec["schedulingGates"] = [{"name": "wait"}]
    if rng.random() < 0.2:
        spec["tolerations"] = [{"key": TROUBLE, "operator": "Exists"}]
    return spec


def make_budget(name: str, app: str, allowed: int) -> Json:
    """A PodDisruptionBudget."""
    return {
        "metadata": {"namespace": "default", "name": name},
        "spec": {"selector": {"matchLabels": {"app": app}}},
        "status": {"disruptionsAllowed": allowed},
    }


def _draw_term(rng: random.Random, app: str) -> Json:
    """An affinity term for an app of this namespace, or of all namespaces of a team."""
    if rng.random() < 0.5:
        return _term(app)
    return {**_term(app), "namespaceSelector": {"matchLabels": {"team": rng.choice(TEAMS)}}}


def _term(app: str) -> Json:
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": HOSTNAME}
