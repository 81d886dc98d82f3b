"""Validation of storage: recounts everything from the objects and compares."""

from __future__ import annotations

import numpy as np

from stowage.api.values.csi_migration import migrated_plugins
from stowage.state.cluster_state import ClusterState
from stowage.state.storage.csi_nodes import NO_LIMIT
from stowage.state.storage.objects import Storage
from stowage.state.storage.volume_use import VolumeUse, attached_volume
from stowage.state.violation import expect


def validate_storage(state: ClusterState) -> None:
    """Recount everything that depends on storage objects.

    Raises:
        InvariantViolation: A value differs from the recount.
    """
    _check_indices(state.storage)
    _check_use(state)
    _check_csi_nodes(state)
    for assumptions, cache in (
        (state.storage.claims.assumptions(), state.storage.claims),
        (state.storage.volumes.assumptions(), state.storage.volumes),
    ):
        unknown = [key for key, _ in assumptions if cache.get_api_object(key) is None]
        expect("assumptions about what does not exist", [], unknown)


def _check_indices(storage: Storage) -> None:
    """Compare the look-ups with those of a new `Storage` with the same objects."""
    fresh = Storage()
    for obj in storage.objects():
        fresh.put(obj)
    for key, claim in storage.claims.assumptions():
        fresh.claims.assume(claim.object, claim.pod_uid)
        expect(f"claim {key}", claim.object, storage.claims.get(key))
    for key, volume in storage.volumes.assumptions():
        fresh.volumes.assume(volume.object, volume.pod_uid)
        expect(f"volume {key}", volume.object, storage.volumes.get(key))
    for name, want in fresh.look_ups().items():
        expect(f"storage by {name}", want, storage.look_ups()[name])


def _check_use(state: ClusterState) -> None:
    columns = state.columns
    recounted = VolumeUse(state.storage, columns.num_rows)
    for pod in state.placed:
        row = columns.row_of(pod.node_name)
        expect(f"{pod.key} has a row", True, row is not None)
        recounted.add_pod(pod, row or 0)
    for attachment in state.storage.attachments.values():
        row = columns.row_of(attachment.spec.node_name)
        expect(f"attachment {attachment.metadata.name} has a row", True, row is not None)
        volume = attached_volume(attachment, state.storage)
        if volume is not None:
            recounted.add_attachment(volume, row or 0)
    found = state.volume_use.counts()
    for name, want in recounted.counts().items():
        expect(name, want, found[name])


def _check_csi_nodes(state: ClusterState) -> None:
    columns, csi_nodes = state.columns, state.csi_nodes
    for name, csi_node in state.storage.csi_nodes.items():
        row = columns.row_of(name)
        expect(f"CSINode {name} has a row", True, row is not None)
        expect(f"CSINode of row {row}", csi_node, csi_nodes.on_row(row or 0))
        for plugin in migrated_plugins(csi_node):
            migrated = csi_nodes.migrated(plugin)
            expect(f"{plugin} migrated on {name}", True, migrated is not None and migrated[row])
    told: dict[str, dict[str, int]] = {}
    for name, csi_node in state.storage.csi_nodes.items():
        for driver in csi_node.spec.drivers:
            if driver.allocatable is not None and driver.allocatable.count is not None:
                told.setdefault(driver.name, {})[name] = driver.allocatable.count
    for driver_name, want in told.items():
        limits = csi_nodes.limits(driver_name)
        rows = [] if limits is None else np.flatnonzero(limits != NO_LIMIT).tolist()
        found = {columns.names[row]: int(limits[row]) for row in rows if limits is not None}
        expect(f"limits of {driver_name}", want, found)
