"""The pods of a DaemonSet: which nodes are eligible, and the pod for one node."""

import copy
from typing import NamedTuple

from simcluster.controllers.ownership import pod_from_template
from simcluster.controllers.workloads.controller_revisions import REVISION_LABEL
from simcluster.kinds.resources import DAEMON_SETS
from simcluster.store.store import Stored
from simcluster.values import Json
from stowage.api import Node, PodSpec, required_node_affinity
from stowage.api.values.tolerations import tolerated

TEMPLATE_GENERATION = "pod-template-generation"
_NAME_FIELD = "metadata.name"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_TOLERATED = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_OF_HOST_NETWORK = ("node.kubernetes.io/network-unavailable", "NoSchedule")


class Belonging(NamedTuple):
    """Whether a pod should be made on a node, and whether one that is there may stay."""

    should_run: bool
    may_stay: bool


def daemon_spec(template_spec: Json) -> Json:
    """A pod spec with the tolerations every daemon pod has."""
    spec = copy.deepcopy(template_spec)
    wanted = [*_TOLERATED, *([_OF_HOST_NETWORK] if spec.get("hostNetwork") else [])]
    tolerations = list(spec.get("tolerations") or ())
    for key, effect in wanted:
        toleration = {"key": key, "operator": "Exists", "effect": effect}
        if toleration not in tolerations:
            tolerations.append(toleration)
    spec["tolerations"] = tolerations
    return spec


def belonging(spec: PodSpec, node: Node) -> Belonging:
    """Judge one node as kube-controller-manager's ``nodeShouldRunDaemonPod``.

    Args:
        spec: of the pod, with :func:`daemon_spec`'s tolerations.
        node: the node.
    """
    name = node.metadata.name
    if spec.node_name and spec.node_name != name:
        return Belonging(False, False)
    if not required_node_affinity(spec).matches(node.metadata.labels, name):
        return Belonging(False, False)
    untolerated = {
        taint.effect for taint in node.spec.taints if not tolerated(taint, spec.tolerations)
    }
    return Belonging(not untolerated & {"NoExecute", "NoSchedule"}, "NoExecute" not in untolerated)


def daemon_pod(stored: Stored, node_name: str, revision_label: str) -> Json:
    """A DaemonSet's pod for one node; the scheduler binds it, by its affinity, to that node."""
    pod = pod_from_template(DAEMON_SETS, stored)
    labels = pod["metadata"].setdefault("labels", {})
    labels[REVISION_LABEL] = revision_label
    labels[TEMPLATE_GENERATION] = str(stored.metadata.get("generation", 1))
    pod["spec"] = daemon_spec(pod["spec"])
    pod["spec"]["affinity"] = _pinned(pod["spec"].get("affinity") or {}, node_name)
    return pod


def _pinned(affinity: Json, node_name: str) -> Json:
    """Affinity with the node's name in every required term, instead of any other name there."""
    field = {"key": _NAME_FIELD, "operator": "In", "values": [node_name]}
    node_affinity = affinity.get("nodeAffinity") or {}
    terms = (node_affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or [{}]
    pinned = [{**term, "matchFields": [field]} for term in terms]
    required = {"nodeSelectorTerms": pinned}
    return {**affinity, "nodeAffinity": {**node_affinity, _REQUIRED: required}}


def pinned_node(pod: Stored) -> str:
    """The node a daemon pod is bound to, or was made for."""
    spec = pod.spec
    if spec.get("nodeName"):
        return str(spec["nodeName"])
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    for term in (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field.get("key") == _NAME_FIELD and field.get("operator") == "In":
                return str(next(iter(field.get("values") or ()), ""))
    return ""
