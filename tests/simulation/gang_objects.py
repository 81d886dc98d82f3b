"""Pod groups of the simulated cluster, and which pods are their members."""

from __future__ import annotations

from collections.abc import Iterable

from tests.simulation.feasible_nodes import FINISHED
from tests.simulation.objects import RACK, make_pod
from tests.simulation.server import GROUPS, LABEL_GROUPS, NODES, PODS, Json, Key, ModelServer

LABEL = "scheduling.x-k8s.io/pod-group"


def make_group(
    path: str, name: str, min_count: int | None, *, is_in_one_rack: bool = False
) -> Json:
    """A gang, or a basic group; groups of the coscheduling plugin know neither basic nor racks."""
    metadata = {"namespace": "default", "name": name}
    if path == LABEL_GROUPS:
        return {"metadata": metadata, "spec": {"minMember": min_count or 1}}
    gang = {"basic": {}} if min_count is None else {"gang": {"minCount": min_count}}
    spec: Json = {"schedulingPolicy": gang}
    if is_in_one_rack:
        spec["schedulingConstraints"] = {"topology": [{"key": RACK}]}
    return {"metadata": metadata, "spec": spec, "status": {}}


def make_member(path: str, group: str, name: str, cpu: str, priority: int) -> Json:
    """A member that names its group by the field or by the label."""
    pod = make_pod(name, cpu, priority=priority)
    if path == GROUPS:
        pod["spec"]["schedulingGroup"] = {"podGroupName": group}
    else:
        pod["metadata"]["labels"][LABEL] = group
    return pod


def group_of(pod: Json) -> tuple[str, Key] | None:
    """The list path and the key of the group that a pod names; None without one."""
    namespace = pod["metadata"]["namespace"]
    if "schedulingGroup" in pod["spec"]:
        return GROUPS, (namespace, pod["spec"]["schedulingGroup"]["podGroupName"])
    name = pod["metadata"].get("labels", {}).get(LABEL)
    return None if name is None else (LABEL_GROUPS, (namespace, name))


def min_count_of(group: Json) -> int | None:
    """How many members a gang needs; None for a basic group."""
    spec = group["spec"]
    if "minMember" in spec:
        return int(spec["minMember"])
    gang = spec["schedulingPolicy"].get("gang")
    return None if gang is None else int(gang["minCount"])


def members_of(server: ModelServer, path: str, key: Key) -> list[Json]:
    """The unfinished pods that name a group."""
    return [
        pod
        for pod in server.collection(PODS).values()
        if group_of(pod) == (path, key) and pod["status"].get("phase") not in FINISHED
    ]


def racks_of(server: ModelServer, pods: Iterable[Json]) -> set[str]:
    """The racks of the nodes of some pods; empty for a node in no rack, or gone."""
    nodes = server.collection(NODES)
    names = (("", pod["spec"]["nodeName"]) for pod in pods)
    return {nodes[key]["metadata"]["labels"].get(RACK, "") if key in nodes else "" for key in names}


def is_surplus_of_a_grown_rack(server: ModelServer, pod: Json, node_name: str) -> bool:
    """Whether a node came into the rack of a pod's companions since the pod is there.

    Its label changed, or that of a companion's node. For most plugins that rejected the pod on the
    other nodes this is no event that helps, in kube-scheduler either: the pod waits until five
    minutes are over.
    """
    named = group_of(pod)
    group = named and server.collection(named[0]).get(named[1])
    if not named or not group or "schedulingConstraints" not in group["spec"]:
        return False
    names = {each["spec"].get("nodeName", "") for each in members_of(server, *named)} - {""}
    uid = pod["metadata"]["uid"]
    since = next(
        index
        for index, change in enumerate(server.history)
        if change.path == PODS and change.current["metadata"]["uid"] == uid
    )
    return bool(names) and any(
        change.path == NODES
        and change.current["metadata"]["name"] in {node_name, *names}
        and change.before is not None
        and _rack_of(change.before) != _rack_of(change.current)
        for change in server.history[since:]
    )


def _rack_of(node: Json) -> str:
    rack: str = node["metadata"]["labels"].get(RACK, "")
    return rack


def is_held(server: ModelServer, pod: Json) -> bool:
    """Whether a pod waits without a sign: its group or some of its companions are missing."""
    named = group_of(pod)
    if named is None or named[0] not in server.served_groups:
        return False
    group = server.collection(named[0]).get(named[1])
    if group is None:
        return True
    return len(members_of(server, *named)) < (min_count_of(group) or 0)
