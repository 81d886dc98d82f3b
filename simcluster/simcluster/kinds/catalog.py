"""The resources that a cluster serves: built-in ones, and those of CustomResourceDefinitions."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType

from simcluster.kinds.resources import BUILT_IN, Resource

BY_KIND: Mapping[tuple[str, str], Resource] = {
    (resource.api_version, resource.kind): resource for resource in BUILT_IN
}

_OTHER_GROUPS = """
apiregistration.k8s.io apps events.k8s.io authentication.k8s.io authorization.k8s.io autoscaling
batch certificates.k8s.io networking.k8s.io policy rbac.authorization.k8s.io storage.k8s.io
admissionregistration.k8s.io apiextensions.k8s.io scheduling.k8s.io coordination.k8s.io node.k8s.io
discovery.k8s.io resource.k8s.io flowcontrol.apiserver.k8s.io
"""
_GROUPS = ("", *_OTHER_GROUPS.split())
_REVIEW_GROUPS = ("authentication.k8s.io", "authorization.k8s.io")
_PathKey = tuple[str, str, str]


class Catalog:
    """The resources one cluster serves.

    Args:
        alpha: kinds that are served besides those of every cluster.

    Attributes:
        generation: counts changes, so that derived data can be cached.
    """

    def __init__(self, alpha: Iterable[Resource] = ()) -> None:
        self.generation = 0
        self._by_path: dict[_PathKey, Resource] = {}
        self._by_kind = dict(BY_KIND)
        for found in (*BUILT_IN, *alpha):
            self._by_path[_key(found)] = found
            self._by_kind[found.api_version, found.kind] = found
        self._custom: dict[str, tuple[Resource, ...]] = {}
        self._announced: set[str] = set()
        self._listeners: list[Callable[[Resource], None]] = []

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """The resource served under a group, a version and a plural."""
        return self._by_path.get((group, version, plural))

    def of_kind(self, api_version: str, kind: str) -> Resource | None:
        """The resource of an object's apiVersion and kind."""
        return self._by_kind.get((api_version, kind))

    def __iter__(self) -> Iterator[Resource]:
        return iter(self._by_path.values())

    def custom(self) -> Mapping[str, tuple[Resource, ...]]:
        """Served versions of custom resources, by the name of their definition."""
        return MappingProxyType(self._custom)

    def collections(self) -> list[Resource]:
        """One resource for each collection of the store."""
        found: dict[str, Resource] = {}
        for resource in self:  # of two with the same collection, the first
            found.setdefault(resource.stored_in, resource)
        return list(found.values())

    def follow_collections(self, listener: Callable[[Resource], None]) -> None:
        """Call ``listener`` with one resource of each collection that is added from now on."""
        self._listeners.append(listener)

    def serve(self, definition: str, resources: Iterable[Resource]) -> None:
        """Serve these versions of a definition's resource instead of those served before."""
        before = self._custom.pop(definition, ())
        for resource in before:
            self._by_path.pop(_key(resource), None)
            self._by_kind.pop((resource.api_version, resource.kind), None)
        served = tuple(resources)
        if served:
            self._custom[definition] = served
        for resource in served:
            self._by_path[_key(resource)] = resource
            self._by_kind[resource.api_version, resource.kind] = resource
        self.generation += 1
        if served and served[0].stored_in not in self._announced:
            self._announced.add(served[0].stored_in)
            for listener in self._listeners:
                listener(served[0])

    def has_own_group(self, group: str) -> bool:
        """Whether a group is built in."""
        return group in _GROUPS

    def group_versions(self) -> list[tuple[str, str]]:
        """Every served (group, version): the core group first, preferred versions first."""
        served = {(found.group, found.version) for found in self}
        served |= {(group, "v1") for group in _REVIEW_GROUPS}
        return sorted(served, key=_rank)


def _key(resource: Resource) -> _PathKey:
    return resource.group, resource.version, resource.plural


def _rank(group_version: tuple[str, str]) -> tuple[int, str, tuple[int, int, int, str]]:
    group, version = group_version
    place = _GROUPS.index(group) if group in _GROUPS else len(_GROUPS)
    return place, group, version_rank(version)


def version_rank(version: str) -> tuple[int, int, int, str]:
    """Sorts versions as Kubernetes prefers them: v10, v2, v1, v2beta1, v1alpha1, then others."""
    body = version.removeprefix("v")
    for stage, word in ((1, "beta"), (2, "alpha")):
        major, found, minor = body.partition(word)
        if found and major.isdigit() and minor.isdigit() and version != body:
            return stage, -int(major), -int(minor), ""
    if body.isdigit() and version != body:
        return 0, -int(body), 0, ""
    return 3, 0, 0, version
