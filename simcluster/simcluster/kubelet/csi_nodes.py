"""The CSINode of a node, as its simulated kubelet registers it."""

from simcluster.kinds.resources import NODES
from simcluster.kubelet.nodes import HOSTNAME, ZONE
from simcluster.store.store import Stored
from simcluster.values import Json

CSI_DRIVERS = "stowage/csi-drivers"


def csi_node_for(node: Stored) -> Json | None:
    """The CSINode that a node's annotation requests; ``None`` without the annotation.

    A driver's topology key is the zone, or the host name on a node without a zone.
    """
    metadata = node.obj["metadata"]
    text = (metadata.get("annotations") or {}).get(CSI_DRIVERS)
    if text is None:
        return None
    labels = metadata.get("labels") or {}
    key = ZONE if ZONE in labels else HOSTNAME
    owner = {"apiVersion": "v1", "kind": NODES.kind, "name": node.name, "uid": metadata["uid"]}
    return {
        "metadata": {"name": node.name, "ownerReferences": [owner]},
        "spec": {"drivers": [_driver(part.strip(), node.name, key) for part in text.split(",")]},
    }


def _driver(text: str, node_name: str, topology_key: str) -> Json:
    name, _, limit = text.partition("=")
    driver: Json = {"name": name, "nodeID": node_name, "topologyKeys": [topology_key]}
    if limit.isdigit():
        driver["allocatable"] = {"count": int(limit)}
    return driver
