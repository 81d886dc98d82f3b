"""Parses request paths into the resource, object or subresource that they address."""

from collections.abc import Mapping
from typing import NamedTuple

from simcluster.kinds.catalog import Catalog
from simcluster.kinds.resources import NAMESPACES, Resource


class Target(NamedTuple):
    """An addressed resource.

    ``namespace`` is ``None`` where the path names none: all namespaces, or a cluster-scoped kind.
    """

    resource: Resource
    namespace: str | None
    name: str
    subresource: str


class Review(NamedTuple):
    """A POST-only virtual resource, such as ``tokenreviews`` or a namespace's ``bindings``."""

    group: str
    version: str
    plural: str
    namespace: str

    @property
    def kind(self) -> str:
        """The kind that is posted and answered."""
        return REVIEWS[self.group, self.plural][0]


_AUTHENTICATION, _AUTHORIZATION = "authentication.k8s.io", "authorization.k8s.io"
REVIEWS: Mapping[tuple[str, str], tuple[str, bool]] = {
    ("", "bindings"): ("Binding", True),
    (_AUTHENTICATION, "selfsubjectreviews"): ("SelfSubjectReview", False),
    (_AUTHENTICATION, "tokenreviews"): ("TokenReview", False),
    (_AUTHORIZATION, "localsubjectaccessreviews"): ("LocalSubjectAccessReview", True),
    (_AUTHORIZATION, "selfsubjectaccessreviews"): ("SelfSubjectAccessReview", False),
    (_AUTHORIZATION, "selfsubjectrulesreviews"): ("SelfSubjectRulesReview", False),
    (_AUTHORIZATION, "subjectaccessreviews"): ("SubjectAccessReview", False),
}
"""Kind and scope of each POST-only resource, by its group and plural; all are of version v1."""


def without_watch_prefix(path: str) -> tuple[str, bool]:
    """A path without the deprecated ``/watch`` after its version, and whether it had one."""
    if "/watch/" not in path:
        return path, False
    parts = path.strip("/").split("/")
    depth = 2 if parts[0] == "api" else 3
    if parts[0] not in {"api", "apis"} or len(parts) < depth + 2 or parts[depth] != "watch":
        return path, False
    del parts[depth]
    return "/" + "/".join(parts), True


def parse_path(path: str, catalog: Catalog) -> Target | Review | None:
    """Read an API path; ``None`` if it addresses no served resource."""
    if "//" in path:
        return None
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in NAMESPACES.subresources:
        return _target(catalog, (group, version), rest[1], rest[2:])
    return _target(catalog, (group, version), None, rest)


def _target(
    catalog: Catalog, group_version: tuple[str, str], namespace: str | None, rest: list[str]
) -> Target | Review | None:
    (group, version), plural = group_version, rest[0]
    if version == "v1" and (group, plural) in REVIEWS and len(rest) == 1:
        return Review(group, version, plural, namespace or "")
    resource = catalog.find(group, version, plural)
    if resource is None or (len(rest) > 3 and rest[2] != "proxy"):
        return None
    if not resource.namespaced and namespace is not None:
        return None
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if resource.namespaced and namespace is None and name:
        return None
    if subresource and subresource not in resource.subresources:
        return None
    return Target(resource, namespace, name, subresource)
