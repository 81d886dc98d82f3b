"""Small controllers: what scheduling needs of kube-controller-manager, driven by changes only.

Each follows the store, enqueues the keys of objects that need a look, and compares what is with
what should be (``reconciler``). ``shared`` holds what they have in common: indexes of pods by owner
and by node, the recorder of Events, and the timers, which tests turn by hand. What one change costs
does not grow with the cluster: counts are kept up to date by the indexes (``ownership``,
``daemon_book``, ``budget_book``), and selectors are found by label (``selector_index``).

Nothing is assumed about who wrote an object. A cluster that was loaded from a file is taken as it
is: what a controller finds in order at its start it leaves alone.

Left out: CronJobs, pod failure and success policies of Jobs, surge of DaemonSets, the rate limits
and zones of node eviction, and Events about single pods of workloads.
"""

from dataclasses import dataclass

from scheduler.cluster.controllers.attachment import AttachmentController
from scheduler.cluster.controllers.daemon_set import DaemonSetController
from scheduler.cluster.controllers.deployment import DeploymentController
from scheduler.cluster.controllers.disruption import DisruptionController
from scheduler.cluster.controllers.ephemeral_volume import EphemeralVolumeController
from scheduler.cluster.controllers.garbage_collector import GarbageCollector
from scheduler.cluster.controllers.job import JobController
from scheduler.cluster.controllers.namespace import NamespaceController
from scheduler.cluster.controllers.node_lifecycle import (
    DEFAULT_GRACE_S,
    NodeLifecycleController,
)
from scheduler.cluster.controllers.pod_garbage import PodGarbageCollector
from scheduler.cluster.controllers.provisioner import ProvisionerController
from scheduler.cluster.controllers.reconciler import Reconciler
from scheduler.cluster.controllers.replica_set import (
    ReplicaSetController,
    ReplicationControllerController,
)
from scheduler.cluster.controllers.role_aggregation import RoleAggregationController
from scheduler.cluster.controllers.service_accounts import ServiceAccountController
from scheduler.cluster.controllers.shared import Shared
from scheduler.cluster.controllers.stateful_set import StatefulSetController
from scheduler.cluster.controllers.taint_eviction import TaintEvictionController
from scheduler.cluster.controllers.volume import VolumeController
from scheduler.cluster.controllers.volume_protection import VolumeProtectionController

CONTROLLERS: tuple[type[Reconciler], ...] = (
    DeploymentController,
    ReplicaSetController,
    ReplicationControllerController,
    StatefulSetController,
    DaemonSetController,
    JobController,
    GarbageCollector,
    NamespaceController,
    TaintEvictionController,
    PodGarbageCollector,
    DisruptionController,
    VolumeController,
    ProvisionerController,
    VolumeProtectionController,
    AttachmentController,
    EphemeralVolumeController,
    RoleAggregationController,
)


@dataclass(frozen=True)
class ControllerOptions:
    """What of the controllers can be chosen.

    Args:
        node_grace_s: how long a node may be silent before it is Unknown.
        with_service_accounts: give every namespace its default ServiceAccount and the ConfigMap
            ``kube-root-ca.crt``.
        authority_pem: what that ConfigMap holds.
    """

    node_grace_s: float = DEFAULT_GRACE_S
    with_service_accounts: bool = False
    authority_pem: str = ""


def make_controllers(shared: Shared, options: ControllerOptions) -> list[Reconciler]:
    """All controllers, not started yet."""
    shared.index_pods()
    controllers: list[Reconciler] = [controller(shared) for controller in CONTROLLERS]
    controllers.append(NodeLifecycleController(shared, options.node_grace_s))
    if options.with_service_accounts:
        controllers.append(ServiceAccountController(shared, options.authority_pem))
    return controllers


__all__ = ["ControllerOptions", "Reconciler", "Shared", "make_controllers"]
