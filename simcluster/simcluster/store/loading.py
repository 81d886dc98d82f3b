"""Loads the objects of another cluster; keeps their names, uids, nodes and statuses."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simcluster.apiserver.bodies import type_of
from simcluster.apiserver.errors import ApiError
from simcluster.apiserver.event_conversion import to_core
from simcluster.crds.definitions import is_established, resources_of
from simcluster.kinds.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    EVENTS_V1,
    NAMESPACES,
    NODES,
    PODS,
    Resource,
)
from simcluster.schema import DecodingError, conform
from simcluster.store.dump_reader import DumpError, read_dump
from simcluster.store.registry import Registry

Json = dict[str, Any]

_DROPPED = ("managedFields", "selfLink")


@dataclass
class LoadReport:
    """The result of loading files.

    Attributes:
        loaded: number of loaded objects of each kind.
        skipped: number of objects of each kind (with its apiVersion) that is not served.
        warnings: further sentences for the user.
    """

    loaded: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    warnings: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """The report for a person."""
        loaded = ", ".join(f"{count} {kind}" for kind, count in sorted(self.loaded.items()))
        found = [f"loaded {loaded or 'nothing'}"]
        found += [
            f"left out {count} of kind {kind}: this cluster does not serve it"
            for kind, count in sorted(self.skipped.items())
        ]
        return found + self.warnings


def load_files(registry: Registry, paths: Iterable[Path], *, strict: bool = False) -> LoadReport:
    """Put the objects of dumps into an empty cluster, in any order.

    An object with a uid is stored unchanged, except its ``managedFields``; an object without a uid
    is a manifest and is created, with defaults. Missing namespaces are created. Of two objects of
    the same name the one with the higher resourceVersion stays.

    Args:
        registry: of the cluster; nothing watches it yet.
        paths: files as :func:`read_dump` reads them.
        strict: refuse kinds that are not served instead of skipping them.

    Raises:
        OSError: a file cannot be read.
        DumpError: an object is malformed, a manifest is refused, or, with ``strict``, a kind is not
            served.
    """
    loading = _Loading(registry, strict)
    for path in paths:
        for position, obj in enumerate(read_dump(path)):
            loading.take(f"{path}: object {position + 1}", obj)
    return loading.finish()


class _Loading:
    """The work of one :func:`load_files`."""

    def __init__(self, registry: Registry, strict: bool) -> None:
        self._registry = registry
        self._store = registry.store
        self._strict = strict
        self._report = LoadReport()
        self._manifests: list[tuple[str, Resource, Json]] = []
        self._unknown: list[tuple[str, Json]] = []
        self._namespaces: dict[str, None] = {}
        self._node_names: Counter[str] = Counter()

    def take(self, where: str, obj: Json) -> None:
        """Store an object, or keep it for later as a manifest or an object of unknown kind."""
        resource = self._resource(where, obj)
        if resource is None:
            self._unknown.append((where, obj))
            return
        self._take_known(where, resource, obj)

    def _take_known(self, where: str, resource: Resource, obj: Json) -> None:
        metadata = _checked_metadata(where, resource, obj)
        if resource is EVENTS_V1:
            obj = to_core(obj)
        del obj["kind"], obj["apiVersion"]
        if resource.namespaced:
            self._namespaces[metadata.setdefault("namespace", "default")] = None
        if not metadata.get("uid"):
            self._manifests.append((where, resource, obj))
            return
        self._take_over(resource, obj)

    def _resource(self, where: str, obj: Json) -> Resource | None:
        version, kind = obj.get("apiVersion") or "", obj.get("kind") or ""
        if not version or not kind:
            raise DumpError(f"{where}: no kind or apiVersion (expected a Kubernetes object)")
        return self._registry.catalog.of_kind(version, kind)

    def _take_over(self, resource: Resource, obj: Json) -> None:
        metadata = obj["metadata"]
        for key in _DROPPED:
            metadata.pop(key, None)
        if resource.has_status and resource.custom is None:
            obj.setdefault("spec", {})
            obj.setdefault("status", {})
        namespace, name = metadata.get("namespace", ""), metadata["name"]
        known = self._store.get(resource.stored_in, namespace, name)
        if known is not None and known.revision >= _revision(metadata):
            return
        self._store.load(resource.stored_in, obj)
        if known is None:
            self._report.loaded[resource.kind] += 1
        if resource is PODS and obj["spec"].get("nodeName"):
            self._node_names[obj["spec"]["nodeName"]] += 1

    def finish(self) -> LoadReport:
        """Create missing namespaces and the manifests; returns the report."""
        self._serve_definitions()
        for where, obj in self._unknown:
            resource = self._resource(where, obj)
            if resource is None:
                self._leave_out(where, obj)
            else:
                self._take_known(where, resource, obj)
        for name in self._namespaces:
            if self._store.get(NAMESPACES.stored_in, "", name) is None:
                self._registry.create(NAMESPACES, "", {"metadata": {"name": name}})
        for where, resource, obj in self._manifests:
            self._create(where, resource, obj)
        self._store.forget_history()
        self._warn_of_missing_nodes()
        return self._report

    def _serve_definitions(self) -> None:
        """Serve the custom resources that the files define, so that their objects can be loaded."""
        for where, resource, obj in self._manifests:
            if resource is CUSTOM_RESOURCE_DEFINITIONS:
                self._create(where, resource, obj)
                self._registry.catalog.serve(obj["metadata"]["name"], resources_of(obj))
        self._manifests = [
            found for found in self._manifests if found[1] is not CUSTOM_RESOURCE_DEFINITIONS
        ]
        for stored in self._store.collection(CUSTOM_RESOURCE_DEFINITIONS.stored_in):
            if is_established(stored.obj):
                self._registry.catalog.serve(stored.name, resources_of(stored.obj))

    def _leave_out(self, where: str, obj: Json) -> None:
        version, kind = obj["apiVersion"], obj["kind"]
        if self._strict:
            raise DumpError(f"{where}: {kind} of {version} is not served by this cluster")
        self._report.skipped[f"{kind} ({version})"] += 1

    def _create(self, where: str, resource: Resource, obj: Json) -> None:
        """Create the object of a manifest."""
        struct = type_of(resource)
        try:
            if struct is not None:
                conform(obj, struct)
            self._registry.create(resource, obj["metadata"].get("namespace", ""), obj)
        except ApiError as refusal:
            raise DumpError(f"{where}: {refusal.message}") from refusal
        except DecodingError as error:
            raise DumpError(f"{where}: {error}") from error
        self._report.loaded[resource.kind] += 1

    def _warn_of_missing_nodes(self) -> None:
        missing = {
            name: count
            for name, count in self._node_names.items()
            if self._store.get(NODES.stored_in, "", name) is None
        }
        if missing:
            pods, example = sum(missing.values()), min(missing)
            self._report.warnings.append(
                f"{pods} pods are bound to {len(missing)} nodes that are not in the files, such as "
                f"{example}: they stay as they are"
            )


def _checked_metadata(where: str, resource: Resource, obj: Json) -> Json:
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        raise DumpError(f"{where}: metadata: {metadata!r} (expected an object)")
    name = metadata.get("name")
    if not isinstance(name, str) or not (name or metadata.get("generateName")):
        raise DumpError(f"{where}: metadata.name of {resource.kind}: {name!r} (expected a name)")
    for part in ("spec", "status") if resource.custom is None else ():
        if obj.get(part) is not None and not isinstance(obj[part], dict):
            raise DumpError(f"{where}: {part} of {resource.kind} {name}: expected an object")
    return metadata


def _revision(metadata: Json) -> int:
    text = metadata.get("resourceVersion") or ""
    return int(text) if text.isdigit() else 0
