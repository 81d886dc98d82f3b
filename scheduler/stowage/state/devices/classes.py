"""Device classes, and the extended resources that they serve (``extended/cache.go`` of v1.36)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from stowage.api.objects.device import DeviceClass
from stowage.api.values.resource_names import is_extended_resource_name
from stowage.state.changes import is_older

IMPLICIT_PREFIX = "deviceclass.resource.kubernetes.io/"


def is_dra_resource_name(name: str) -> bool:
    """Whether a device class may serve a resource (``IsDRAExtendedResourceName``)."""
    return name.startswith(IMPLICIT_PREFIX) or is_extended_resource_name(name)


class DeviceClasses:
    """Device classes by name, and by the extended resource that they serve.

    Of several classes that name one resource, the newer one serves it, and of equally old ones the
    one with the lower name. As in kube-scheduler this is decided when a class arrives: a class that
    loses then is not entered at all, and does not succeed the winner.

    Args:
        on_served_change: Called when another class serves a resource, or none, and when the
            selectors of a class change.
        may_serve: Whether classes serve resources at all.

    Attributes:
        version: Grows with every change.
    """

    def __init__(self, on_served_change: Callable[[], None], *, may_serve: bool = True) -> None:
        self._may_serve = may_serve
        self._by_name: dict[str, DeviceClass] = {}
        self._serving: dict[str, str] = {}
        self.version = 0
        self._on_served_change = on_served_change

    def __iter__(self) -> Iterator[DeviceClass]:
        return iter(self._by_name.values())

    @property
    def serves_any(self) -> bool:
        """Whether there is any class; each serves its implicit resource at least."""
        return bool(self._serving)

    def get(self, name: str) -> DeviceClass | None:
        """A class by name."""
        return self._by_name.get(name)

    def serving(self, resource: str) -> DeviceClass | None:
        """The class that serves an extended resource."""
        name = self._serving.get(resource)
        return None if name is None else self._by_name.get(name)

    def put(self, new: DeviceClass) -> tuple[DeviceClass | None, bool]:
        """Store a class; (the one known before, whether this one is newer)."""
        old = self._by_name.get(new.metadata.name)
        if old is not None and old.metadata.uid == new.metadata.uid:
            known, version = old.metadata.resource_version, new.metadata.resource_version
            if is_older(version, known) or version == known != "":
                return old, False
        before = dict(self._serving)
        self.version += 1
        if old is not None and old.spec.extended_resource_name != new.spec.extended_resource_name:
            self._leave(old)
        self._by_name[new.metadata.name] = new
        self._enter(new)
        if before != self._serving or old is None or old.spec.selectors != new.spec.selectors:
            self._on_served_change()
        return old, True

    def drop(self, name: str) -> DeviceClass | None:
        """Remove a class; None if it is unknown."""
        old = self._by_name.pop(name, None)
        if old is not None:
            self.version += 1
            self._leave(old)
            self._on_served_change()
        return old

    def _enter(self, new: DeviceClass) -> None:
        if not self._may_serve:
            return
        resource, name = new.spec.extended_resource_name, new.metadata.name
        if resource:
            served_by = self.serving(resource)
            if served_by is not None and served_by.metadata.name != name and _wins(served_by, new):
                return
            self._serving[resource] = name
        self._serving[f"{IMPLICIT_PREFIX}{name}"] = name

    def _leave(self, old: DeviceClass) -> None:
        name = old.metadata.name
        for resource in (old.spec.extended_resource_name, f"{IMPLICIT_PREFIX}{name}"):
            if resource and self._serving.get(resource) == name:
                del self._serving[resource]


def _wins(known: DeviceClass, new: DeviceClass) -> bool:
    """Whether a known class goes on serving a resource that a new one names as well."""
    since, created = known.metadata.creation_timestamp or "", new.metadata.creation_timestamp or ""
    return since > created or (since == created and known.metadata.name < new.metadata.name)
