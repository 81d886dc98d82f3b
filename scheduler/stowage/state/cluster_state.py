"""The live parts of the state: the cache writes them, snapshots and what-ifs read them."""

from __future__ import annotations

from stowage.state.custom_objects import CustomObjects
from stowage.state.devices.devices import Devices
from stowage.state.devices.features import ALL_FEATURES, DeviceFeatures
from stowage.state.namespaces import Namespaces
from stowage.state.nodes.node_columns import NodeColumns
from stowage.state.pods.disruption_budgets import DisruptionBudgets
from stowage.state.pods.placed_pods import PlacedPods
from stowage.state.pods.pod_groups import PodGroups
from stowage.state.pods.pod_index import PodIndex
from stowage.state.pods.ranked_pods import RankedPods
from stowage.state.storage.csi_nodes import CSINodeColumns
from stowage.state.storage.objects import Storage
from stowage.state.storage.volume_use import VolumeUse
from stowage.state.workloads import Workloads


class ClusterState:
    """Nodes, the pods on them, storage and the objects that select pods.

    Attributes:
        generation: Grows with every change of any part.
        columns: A row per node.
        placed: The pods on each row.
        namespaces: Labels of namespaces.
        workloads: What Services and controllers select.
        budgets: The pod disruption budgets.
        pod_groups: The pod groups and their members.
        ranked: The pods on each row in order of importance.
        pods: Counts of pods by selector, and the affinity terms of placed pods.
        storage: Claims, volumes and what belongs to them.
        volume_use: What pods take of storage on each node.
        csi_nodes: What CSI drivers say about nodes.
        devices: Slices, classes, claims and allocated devices.
        custom_objects: The objects of the resources that plugins registered.
    """

    __slots__ = (
        "budgets",
        "columns",
        "csi_nodes",
        "custom_objects",
        "devices",
        "generation",
        "namespaces",
        "placed",
        "pod_groups",
        "pods",
        "ranked",
        "storage",
        "volume_use",
        "workloads",
    )

    def __init__(self, features: DeviceFeatures = ALL_FEATURES) -> None:
        self.generation = 0
        self.columns = NodeColumns()
        self.placed = PlacedPods()
        self.namespaces = Namespaces()
        self.workloads = Workloads()
        self.budgets = DisruptionBudgets()
        self.pod_groups = PodGroups()
        self.custom_objects = CustomObjects()
        self.ranked = RankedPods(self.placed, self.columns.resources)
        self.pods = PodIndex(self.columns.labels, self.namespaces, self.columns.num_rows)
        self.storage = Storage()
        self.volume_use = VolumeUse(self.storage, self.columns.num_rows)
        self.csi_nodes = CSINodeColumns(self.columns.num_rows)
        self.devices = Devices(self.columns, features)
        self.columns.growth_observers += (
            self.pods.grow,
            self.volume_use.grow,
            self.csi_nodes.grow,
        )
