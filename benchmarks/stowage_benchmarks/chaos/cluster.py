"""The cluster of `stowage bench chaos`: one store behind two API servers, in its own process.

The schedulers use the faulty API server. The benchmark uses the calm one, which has no faults and
is never closed, so every change that the benchmark asks for is made.
"""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import uvloop

from simcluster import ClusterOptions, Faults, SimulatedCluster, User, write_kubeconfig
from simcluster.apiserver.server import ApiServer, ServerOptions
from simcluster.auth.users import MASTERS
from simcluster.controllers.devices.claim_release import DeviceClaimReleaseController
from simcluster.controllers.devices.pod_claims import PodDeviceClaimController
from simcluster.controllers.lifecycle.garbage_collector import GarbageCollector
from simcluster.controllers.lifecycle.pod_group_protection import PodGroupProtectionController
from simcluster.controllers.storage.ephemeral_volume import EphemeralVolumeController
from simcluster.controllers.storage.provisioner import ProvisionerController
from simcluster.controllers.storage.volume import VolumeController
from simcluster.controllers.storage.volume_protection import VolumeProtectionController
from simcluster.features import POD_GROUP_VERSION, read_features
from simcluster.kubelet.nodes import bench_node
from stowage.api.config.feature_gates import DEFAULT_FEATURE_GATES
from stowage_benchmarks.chaos.history import HistoryWriter

REPLICAS = ("replica-a", "replica-b", "replica-c")
CALM = "calm"
FAULTY = "faulty"
HISTORY = "history"
CLUSTER = "cluster"
"""Name of the process."""
_MAX_PENDING_FRAMES = 1_000_000
#: The controllers that pods with volumes and claims for devices need.
_CONTROLLERS = (
    EphemeralVolumeController,
    VolumeController,
    ProvisionerController,
    VolumeProtectionController,
    PodDeviceClaimController,
    DeviceClaimReleaseController,
    GarbageCollector,
)
#: Feature gates and versions of the API server that serves pod groups.
_GROUPS_SERVED = ["GenericWorkload=true"], [f"{POD_GROUP_VERSION}=true"]


def kubeconfig_of(directory: Path, name: str) -> Path:
    """The kubeconfig of a replica, of the calm server, or of the faulty server's administrator."""
    return directory / f"{name}.kubeconfig"


def run_chaos_cluster(directory: Path, num_nodes: int, seed: int, *, gangs: bool) -> None:
    """Run the cluster until killed; write kubeconfigs and history to the directory.

    Args:
        directory: Where the files go.
        num_nodes: Number of nodes.
        seed: Of the faults.
        gangs: Whether pod groups are served.
    """
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run(directory, num_nodes, seed, gangs=gangs))


async def _run(directory: Path, num_nodes: int, seed: int, *, gangs: bool) -> None:
    admin_token = "administrator"  # noqa: S105 - of a cluster that holds nothing
    options = ClusterOptions(
        token=admin_token,
        users={f"token-of-{name}": User(name, (MASTERS,)) for name in REPLICAS},
        rbac=True,
        faults_over_http=True,
        with_controllers=False,
        controllers=(*_CONTROLLERS, PodGroupProtectionController) if gangs else _CONTROLLERS,
        gates=read_features(*_GROUPS_SERVED) if gangs else DEFAULT_FEATURE_GATES,
    )
    faults = Faults(random.Random(f"{seed} faults").random)  # noqa: S311 - to be repeatable
    cluster = SimulatedCluster([bench_node(each) for each in range(num_nodes)], options, faults)
    history = HistoryWriter(cluster, directory / HISTORY)
    calm_door = ApiServer(
        cluster.registry, ServerOptions(max_pending_frames=_MAX_PENDING_FRAMES), Faults()
    )
    async with cluster:
        await calm_door.start()
        for name in REPLICAS:
            path = kubeconfig_of(directory, name)
            write_kubeconfig(path, cluster.url, f"token-of-{name}", None)
        write_kubeconfig(kubeconfig_of(directory, FAULTY), cluster.url, admin_token, None)
        # The last one says that all are there.
        write_kubeconfig(kubeconfig_of(directory, CALM), calm_door.url, "", None)
        await history.run()
