"""Topology segments of nodes and of StorageClasses."""

import itertools
from collections.abc import Iterable

from simcluster.kinds.resources import CSI_NODES, NODES
from simcluster.kubelet.nodes import HOSTNAME, ZONE
from simcluster.store.store import Store
from simcluster.values import Json

Segment = dict[str, str]
Topology = list[Segment]


def topology_keys(store: Store, node_name: str, driver: str) -> list[str] | None:
    """The topology keys of a driver on a node; ``None`` if it is not registered there."""
    csi_node = store.get(CSI_NODES.stored_in, "", node_name)
    for found in (csi_node.obj["spec"].get("drivers") or ()) if csi_node is not None else ():
        if found.get("name") == driver:
            return list(found.get("topologyKeys") or ())
    return None


def node_topology(store: Store, node_name: str, driver: str) -> Segment:
    """The segment of a node for a driver.

    Without a registered driver it is the node's zone, or the node itself if it has no zone.
    """
    node = store.get(NODES.stored_in, "", node_name)
    labels = (node.obj["metadata"].get("labels") or {}) if node is not None else {}
    keys = topology_keys(store, node_name, driver)
    if keys is None:
        keys = [next((key for key in (ZONE, HOSTNAME) if key in labels), HOSTNAME)]
    return {key: labels[key] for key in keys if key in labels}


def allowed_segments(terms: Iterable[Json]) -> Topology:
    """The segments of a StorageClass's ``allowedTopologies``, one per combination of values."""
    found: Topology = []
    for term in terms:
        expressions = term.get("matchLabelExpressions") or ()
        keys = [expression["key"] for expression in expressions]
        values = [expression.get("values") or () for expression in expressions]
        found += [dict(zip(keys, chosen, strict=True)) for chosen in itertools.product(*values)]
    return found
