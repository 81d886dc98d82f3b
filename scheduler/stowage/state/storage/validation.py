"""Validation of storage, step by step: recounts everything from the objects and compares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np

from stowage.api.objects.volume import (
    CSIStorageCapacity,
    StorageObject,
)
from stowage.api.values.csi_migration import AttachedVolume, migrated_plugins
from stowage.state.cluster_state import ClusterState
from stowage.state.storage.assume_cache import ApiObject, AssumeCache
from stowage.state.storage.csi_nodes import NO_LIMIT
from stowage.state.storage.objects import Storage
from stowage.state.storage.volume_use import VolumeUse, attached_volume
from stowage.state.violation import expect

T = TypeVar("T", bound=ApiObject)
_AT_ONCE = 64
_NOTHING = object()


def storage_validation_steps(state: ClusterState) -> Iterator[None]:
    """Recount everything that depends on storage objects.

    Raises:
        InvariantViolation: A value differs from the recount.
    """
    yield from _look_up_steps(state.storage)
    yield from _use_steps(state)
    _check_attachments(state)
    yield
    _check_attached_counts(state)
    yield
    yield from _csi_node_steps(state)
    for cache in (state.storage.claims, state.storage.volumes):
        unknown = [key for key, _ in cache.assumptions() if cache.get_api_object(key) is None]
        expect("assumptions about what does not exist", [], unknown)
    yield


def check_volumes_of_row(state: ClusterState, row: int) -> None:
    """Compare the use of storage by the pods of a row.

    Raises:
        InvariantViolation: A count differs from the recount.
    """
    tables = state.volume_use.tables()
    for name, counts in _recount_row(state, row).items():
        for key, expected in counts.items():
            found = tables[name].at(key).get(row, 0)
            if expected != found:
                expect(f"{name}: {key} on row {row}", expected, found)


def _recount_row(state: ClusterState, row: int) -> dict[str, dict[object, int]]:
    """What the pods of a row use, by table and key; empty without volumes."""
    pods = [pod for pod in state.placed.on_row(row) if pod.volumes]
    if not pods:
        return {}
    recounted = VolumeUse(state.storage, state.columns.num_rows)
    for pod in pods:
        recounted.add_pod(pod, row)
    return {
        name: {key: table.at(key)[row] for key in table}
        for name, table in recounted.tables().items()
    }


def _use_steps(state: ClusterState) -> Iterator[None]:
    """Check that what the tables count is used; `check_volumes_of_row` checks the other way."""
    for name in state.volume_use.tables():
        if name == "volumes of attachments":
            continue
        for keys in _batches(tuple(state.volume_use.tables()[name])):
            for key in keys:
                yield from _key_steps(state, name, key)
            yield


def _key_steps(state: ClusterState, name: str, key: Any) -> Iterator[None]:
    """Check the rows of one key of a table; a step is a batch of rows after the first batch."""
    table = state.volume_use.tables()[name]
    for number, rows in enumerate(_batches(tuple(table.at(key)))):
        if number:
            yield
        for row in rows:
            found = table.at(key).get(row, 0)
            expected = _recount_row(state, row).get(name, {}).get(key, 0)
            if expected != found:
                expect(f"{name}: {key} on row {row}", expected, found)


def _check_attachments(state: ClusterState) -> None:
    columns, counted = state.columns, Counter[tuple[AttachedVolume, int]]()
    for attachment in state.storage.attachments.values():
        row = columns.row_of(attachment.spec.node_name)
        volume = attached_volume(attachment, state.storage)
        if row is None:
            expect(f"attachment {attachment.metadata.name} has a row", True, False)
        elif volume is not None:
            counted[volume, row] += 1
    table = state.volume_use.tables()["volumes of attachments"]
    found = {(key, row): count for key in table for row, count in table.at(key).items()}
    expect("volumes of attachments", dict(counted), found)


def _check_attached_counts(state: ClusterState) -> None:
    """Compare the attached volumes per driver and row with the tables of volumes."""
    tables = state.volume_use.tables()
    used, attached = tables["volumes of pods"], tables["volumes of attachments"]
    expected = Counter((key.driver, row) for key in used for row in used.at(key))
    for key in attached:
        expected.update((key.driver, row) for row in attached.at(key) if row not in used.at(key))
    expect("attached volumes", dict(expected), state.volume_use.attached_counts())


def _look_up_steps(storage: Storage) -> Iterator[None]:
    """Compare the look-ups with those of a new `Storage` with the same objects."""
    for kind, names in storage.names().items():
        for batch in _batches(names):
            _check_look_ups(storage, kind, batch)
            yield
    yield from _number_steps(storage)
    yield


def _check_look_ups(storage: Storage, kind: type[StorageObject], names: Iterable[str]) -> None:
    """Check that the look-ups have the entries of these objects."""
    fresh = Storage()
    for name in names:
        obj = storage.get_api_object(kind, name)
        if obj is not None:
            fresh.put(obj)
    _assume_as(storage.claims, fresh.claims)
    _assume_as(storage.volumes, fresh.volumes)
    found = storage.look_ups()
    for look_up, by_key in fresh.look_ups().items():
        for key, entries in by_key.items():
            there = found[look_up].get(key, {})
            for name, value in entries.items():
                entry = there.get(name, _NOTHING)
                if entry is not value and entry != value:
                    expect(f"storage by {look_up} {key} has {name}", True, False)


def _assume_as(cache: AssumeCache[T], fresh: AssumeCache[T]) -> None:
    """Assume in `fresh` what is assumed in `cache` about the objects that both have."""
    for name in tuple(fresh.keys()):
        assumption = cache.assumption(name)
        if assumption is not None:
            fresh.assume(assumption.object, assumption.pod_uid)
            expect(f"{name} is as assumed", True, assumption.object == cache.get(name))


def _number_steps(storage: Storage) -> Iterator[None]:
    """Check that no look-up has more entries than there are objects."""
    for look_up, count_entries in _NUMBERS.items():
        found = sum(map(len, storage.look_ups()[look_up].values()))
        expect(f"number of entries by {look_up}", count_entries(storage), found)
        yield
    by_volume = [storage.look_ups()[look_up] for look_up in ("class and capacity, free", "claim")]
    found = sum(len(entries) for by_key in by_volume for entries in by_key.values())
    expect("number of volumes in look-ups", len(storage.volumes), found)


_NUMBERS: Mapping[str, Callable[[Storage], int]] = {
    "class of claim": lambda storage: len(storage.claims),
    "volume": lambda storage: sum(bool(claim.spec.volume_name) for claim in storage.claims),
    "class of capacity": lambda storage: len(storage.names()[CSIStorageCapacity]),
    "attached volume": lambda storage: sum(
        attachment.spec.source.persistent_volume_name is not None
        for attachment in storage.attachments.values()
    ),
}


def _csi_node_steps(state: ClusterState) -> Iterator[None]:
    for names in _batches(tuple(state.storage.csi_nodes)):
        for name in names:
            _check_csi_node(state, name)
        yield
    counted: Counter[str] = Counter()
    for csi_node in state.storage.csi_nodes.values():
        counted.update(
            driver.name
            for driver in csi_node.spec.drivers
            if driver.allocatable is not None and driver.allocatable.count is not None
        )
    for driver_name, number in counted.items():
        limits = state.csi_nodes.limits(driver_name)
        found = 0 if limits is None else int(np.count_nonzero(limits != NO_LIMIT))
        expect(f"number of limits of {driver_name}", number, found)
    yield


def _check_csi_node(state: ClusterState, name: str) -> None:
    csi_node, row = state.storage.csi_nodes.get(name), state.columns.row_of(name)
    if csi_node is None:
        return
    if row is None:
        expect(f"CSINode {name} has a row", True, False)
        return
    expect(f"CSINode of row {row} is {name}'s", True, csi_node == state.csi_nodes.on_row(row))
    for plugin in migrated_plugins(csi_node):
        migrated = state.csi_nodes.migrated(plugin)
        expect(f"{plugin} migrated on {name}", True, migrated is not None and migrated[row])
    for driver in csi_node.spec.drivers:
        installed = state.csi_nodes.installed(driver.name)
        expect(f"{driver.name} installed on {name}", True, installed is not None and installed[row])
        if driver.allocatable is not None and driver.allocatable.count is not None:
            limits = state.csi_nodes.limits(driver.name)
            found = None if limits is None else int(limits[row])
            expect(f"limit of {driver.name} on {name}", driver.allocatable.count, found)


def _batches(items: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    return (items[first : first + _AT_ONCE] for first in range(0, len(items), _AT_ONCE))
