"""What the kubelet of a node reports: its conditions, extended resources and drivers."""

import structlog

from simcluster.kinds.resources import CSI_NODES, NODES
from simcluster.kubelet.csi_nodes import csi_node_for
from simcluster.kubelet.device_slices import DevicePublisher
from simcluster.kubelet.node_heartbeat import reported_conditions
from simcluster.kubelet.node_state import NodeBehaviour
from simcluster.store.registry import Registry, editable
from simcluster.store.store import Stored
from simcluster.values import Json
from stowage.api.values.resource_names import is_extended_resource_name

log = structlog.get_logger(__name__)


class NodeReporter:
    """Writes what the kubelets of all nodes report.

    Args:
        registry: nodes, CSINodes and ResourceSlices.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._publisher = DevicePublisher(registry)
        self._capacities: dict[str, dict[str, str]] = {}
        """The extended resources of each node at its last report."""

    def report(
        self, stored: Stored, behaviour: NodeBehaviour, before: NodeBehaviour | None
    ) -> None:
        """Report what has changed since the last report of a node.

        Args:
            stored: the node.
            behaviour: by its annotations.
            before: the behaviour at the last report; ``None`` if there was none.
        """
        now = self._registry.clock.now()
        changed: Json = {}
        conditions = reported_conditions(stored.obj, behaviour, before, now)
        if conditions is not None:
            changed["conditions"] = conditions
        allocatable = self._followed(stored)
        if allocatable is not None:
            changed["allocatable"] = allocatable
        if changed:
            self._registry.change_status(
                NODES, "", stored.name, lambda node: {**node["status"], **changed}
            )
        self._register_drivers(stored)

    def forget(self, node_name: str) -> None:
        """Forget a deleted node."""
        self._capacities.pop(node_name, None)
        self._publisher.forget(node_name)

    def _followed(self, stored: Stored) -> Json | None:
        """A node's allocatable after a change of its extended resources; ``None`` without one.

        A kubelet gives out the capacity that a client wrote. What a node came with stays: less may
        be allocatable than there is.
        """
        allocatable: dict[str, str] = stored.status.get("allocatable") or {}
        capacity = {
            name: amount
            for name, amount in (stored.status.get("capacity") or {}).items()
            if is_extended_resource_name(name)
        }
        before = self._capacities.get(stored.name)
        self._capacities[stored.name] = capacity
        if before is None:
            changed = capacity.keys() - allocatable.keys()
        else:
            changed = {name for name, _ in capacity.items() ^ before.items()}
        kept = {name: amount for name, amount in allocatable.items() if name not in changed}
        wanted = kept | {name: capacity[name] for name in capacity.keys() & changed}
        return None if wanted == allocatable else wanted

    def _register_drivers(self, stored: Stored) -> None:
        """Keep CSINode and ResourceSlices of a node equal to the drivers in its annotations."""
        try:
            self._publisher.publish(stored)
        except ValueError as error:
            log.warning("annotation of a node", node=stored.name, problem=str(error))
        wanted = csi_node_for(stored)
        if wanted is None:
            return
        known = self._registry.store.get(CSI_NODES.stored_in, "", stored.name)
        if known is None:
            self._registry.create(CSI_NODES, "", wanted)
        elif known.spec != wanted["spec"]:
            self._registry.replace(CSI_NODES, known, {**editable(known), "spec": wanted["spec"]})
