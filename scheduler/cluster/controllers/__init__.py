"""Small controllers: what a demo needs of kube-controller-manager, each driven by changes only."""

from scheduler.cluster.controllers.deployment import DeploymentController
from scheduler.cluster.controllers.disruption import DisruptionController
from scheduler.cluster.controllers.garbage_collector import GarbageCollector
from scheduler.cluster.controllers.job import JobController
from scheduler.cluster.controllers.namespace import NamespaceController
from scheduler.cluster.controllers.node_lifecycle import NodeLifecycleController
from scheduler.cluster.controllers.reconciler import Reconciler
from scheduler.cluster.controllers.replica_set import ReplicaSetController
from scheduler.cluster.controllers.volume import VolumeController

CONTROLLERS: tuple[type[Reconciler], ...] = (
    DeploymentController,
    ReplicaSetController,
    JobController,
    GarbageCollector,
    NamespaceController,
    NodeLifecycleController,
    DisruptionController,
    VolumeController,
)

__all__ = ["CONTROLLERS", "Reconciler"]
