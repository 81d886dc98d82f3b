"""Events that controllers write about objects; repeated ones raise a count."""

from cachetools import LRUCache

from simcluster.apiserver.errors import ApiError
from simcluster.kinds.resources import EVENTS, Resource
from simcluster.store.object_meta import name_suffix
from simcluster.store.registry import Registry
from simcluster.store.store import Stored
from simcluster.values import Json

_REMEMBERED = 4096


class EventRecorder:
    """Writes core Events; the same text about the same object raises the count of one Event.

    Args:
        registry: where Events are written.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._names: LRUCache[tuple[str, str, str], str] = LRUCache(_REMEMBERED)

    def normal(self, source: str, resource: Resource, about: Stored, reason: str, why: str) -> None:
        """Record a normal Event."""
        self._record(source, resource, about, ("Normal", reason, why))

    def warning(
        self, source: str, resource: Resource, about: Stored, reason: str, why: str
    ) -> None:
        """Record a warning."""
        self._record(source, resource, about, ("Warning", reason, why))

    def _record(
        self, source: str, resource: Resource, about: Stored, what: tuple[str, str, str]
    ) -> None:
        kind, reason, message = what
        namespace = about.namespace or "default"
        seen = (about.obj["metadata"]["uid"], reason, message)
        now = self._registry.clock.now()
        name = self._names.get(seen)
        stored = self._registry.store.get(EVENTS.stored_in, namespace, name) if name else None
        if stored is not None:
            count = stored.obj.get("count", 1) + 1
            self._registry.store.put(
                EVENTS.stored_in, {**stored.obj, "count": count, "lastTimestamp": now}
            )
            return
        event: Json = {
            "metadata": {"name": f"{about.name}.{name_suffix()}{name_suffix()}"},
            "involvedObject": {
                "kind": resource.kind,
                "apiVersion": resource.api_version,
                "name": about.name,
                "namespace": about.namespace,
                "uid": about.obj["metadata"]["uid"],
                "resourceVersion": str(about.revision),
            },
            "type": kind,
            "reason": reason,
            "message": message,
            "source": {"component": source},
            "reportingComponent": source,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        try:
            created = self._registry.create(EVENTS, namespace, event)
        except ApiError:
            return  # a terminating namespace takes no more Events
        self._names[seen] = created.name
