"""Controllers of kube-controller-manager that scheduling needs, driven by changes only.

Each controller follows the store, enqueues the keys of changed objects, and reconciles them one by
one (``reconciler``). ``shared`` holds what all controllers use: indexes of pods by owner, node and
claim, the event recorder, and timers, which tests advance by hand. The cost of one change does not
grow with the cluster: the indexes keep counts (``ownership``, ``daemon_book``, ``budget_pods``) and
find selectors by label (``indexes``).

A cluster that was loaded from a file is not changed at the start: a controller leaves objects alone
that are already in order, whatever created them.

Left out: CronJobs, pod failure and success policies of Jobs, surge of DaemonSets, the rate limits
and zones of node eviction, and Events about single pods of workloads.
"""

from dataclasses import dataclass

from simcluster.controllers.devices.claim_release import DeviceClaimReleaseController
from simcluster.controllers.devices.pod_claims import PodDeviceClaimController
from simcluster.controllers.devices.taint_eviction import DeviceTaintEvictionController
from simcluster.controllers.lifecycle.disruption import DisruptionController
from simcluster.controllers.lifecycle.garbage_collector import GarbageCollector
from simcluster.controllers.lifecycle.namespace import NamespaceController
from simcluster.controllers.lifecycle.pod_group_protection import PodGroupProtectionController
from simcluster.controllers.lifecycle.quotas import QuotaController
from simcluster.controllers.lifecycle.role_aggregation import RoleAggregationController
from simcluster.controllers.lifecycle.service_accounts import ServiceAccountController
from simcluster.controllers.nodes.node_lifecycle import DEFAULT_GRACE_S, NodeLifecycleController
from simcluster.controllers.nodes.pod_garbage import PodGarbageCollector
from simcluster.controllers.nodes.taint_eviction import TaintEvictionController
from simcluster.controllers.reconciler import Reconciler
from simcluster.controllers.shared import Shared
from simcluster.controllers.storage.attachment import AttachmentController
from simcluster.controllers.storage.ephemeral_volume import EphemeralVolumeController
from simcluster.controllers.storage.provisioner import ProvisionerController
from simcluster.controllers.storage.volume import VolumeController
from simcluster.controllers.storage.volume_protection import VolumeProtectionController
from simcluster.controllers.workloads.daemon_set import DaemonSetController
from simcluster.controllers.workloads.deployment import DeploymentController
from simcluster.controllers.workloads.job import JobController
from simcluster.controllers.workloads.replica_set import (
    ReplicaSetController,
    ReplicationControllerController,
)
from simcluster.controllers.workloads.stateful_set import StatefulSetController
from simcluster.features import GENERIC_WORKLOAD

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
    PodDeviceClaimController,
    DeviceClaimReleaseController,
    DeviceTaintEvictionController,
    RoleAggregationController,
    QuotaController,
)


@dataclass(frozen=True)
class ControllerOptions:
    """Options of the controllers.

    Args:
        node_grace_s: how long a node's kubelet may be silent before the node is Unknown.
        with_service_accounts: give every namespace its default ServiceAccount and the ConfigMap
            ``kube-root-ca.crt``.
        authority_pem: the certificate in that ConfigMap.
    """

    node_grace_s: float = DEFAULT_GRACE_S
    with_service_accounts: bool = False
    authority_pem: str = ""


def make_controllers(shared: Shared, options: ControllerOptions) -> list[Reconciler]:
    """All controllers, not started yet."""
    shared.index_pods()
    controllers: list[Reconciler] = [controller(shared) for controller in CONTROLLERS]
    controllers.append(NodeLifecycleController(shared, options.node_grace_s))
    if shared.registry.gates.enabled(GENERIC_WORKLOAD):
        controllers.append(PodGroupProtectionController(shared))
    if options.with_service_accounts:
        controllers.append(ServiceAccountController(shared, options.authority_pem))
    return controllers


__all__ = ["ControllerOptions", "Reconciler", "Shared", "make_controllers"]
