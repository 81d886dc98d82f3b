"""The RBAC authorizer: decides by the roles and bindings that are stored in the cluster.

Follows kube-apiserver; a controller (``role_aggregation``) fills aggregated roles. Two checks are
missing: users may grant rights that they do not have, and create objects by PUT without the verb
``create``.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from simcluster.auth.request_attributes import Attributes
from simcluster.auth.users import MASTERS, User
from simcluster.kinds.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    ROLE_BINDINGS,
    ROLES,
    Resource,
)
from simcluster.store.store import Store, Stored

Json = dict[str, Any]


class Decision(NamedTuple):
    """Whether a request is allowed; the reason is as the API server words it, often empty."""

    is_allowed: bool
    reason: str = ""


class _Grant(NamedTuple):
    """One rule that applies to a user; without a rule, a binding to a role that does not exist."""

    rule: Json | None
    source: str


class RbacAuthorizer:
    """Decides by Roles, ClusterRoles and their bindings.

    Args:
        store: of the roles; read for each decision, so that changes apply at once.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def decide(self, user: User, attributes: Attributes) -> Decision:
        """Whether ``user`` may do this."""
        if MASTERS in user.groups:
            return Decision(True)
        missing = []
        for grant in self._grants(user, attributes.namespace):
            if grant.rule is None:
                missing.append(grant.source)
            elif rule_allows(grant.rule, attributes):
                return Decision(True, f"RBAC: allowed by {grant.source}")
        return Decision(False, f"RBAC: {_aggregated(missing)}" if missing else "")

    def rules_for(self, user: User, namespace: str) -> list[Json]:
        """Every rule that applies to ``user`` in a namespace."""
        if MASTERS in user.groups:
            everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
            return [everything, {"verbs": ["*"], "nonResourceURLs": ["*"]}]
        grants = self._grants(user, namespace)
        return [grant.rule for grant in grants if grant.rule is not None]

    def _grants(self, user: User, namespace: str) -> Iterator[_Grant]:
        yield from self._grants_of(CLUSTER_ROLE_BINDINGS, None, user)
        if namespace:
            yield from self._grants_of(ROLE_BINDINGS, namespace, user)

    def _grants_of(self, resource: Resource, namespace: str | None, user: User) -> Iterator[_Grant]:
        for binding in self._store.collection(resource.stored_in).items(namespace):
            subject = _subject_that_is(user, binding)
            if subject is None:
                continue
            reference = binding.obj["roleRef"]
            role = self._role(reference, binding.namespace)
            if role is None:
                yield _Grant(None, _not_found(reference))
                continue
            source = _described(resource, binding, subject)
            for rule in role.obj.get("rules") or ():
                yield _Grant(rule, source)

    def _role(self, reference: Json, namespace: str) -> Stored | None:
        if reference["kind"] == CLUSTER_ROLES.kind:
            return self._store.get(CLUSTER_ROLES.stored_in, "", reference["name"])
        return self._store.get(ROLES.stored_in, namespace, reference["name"])


def rule_allows(rule: Json, attributes: Attributes) -> bool:
    """Whether one PolicyRule allows a request."""
    if not _names(rule, "verbs", attributes.verb):
        return False
    if not attributes.is_resource_request:
        return any(_url_matches(url, attributes.path) for url in rule.get("nonResourceURLs") or ())
    resource_names = rule.get("resourceNames")
    return (
        _names(rule, "apiGroups", attributes.group)
        and _names_resource(rule, attributes)
        and (not resource_names or attributes.name in resource_names)
    )


def _names(rule: Json, field: str, value: str) -> bool:
    named = rule.get(field) or ()
    return "*" in named or value in named


def _names_resource(rule: Json, attributes: Attributes) -> bool:
    if not attributes.subresource:
        return _names(rule, "resources", attributes.resource)
    combined = f"{attributes.resource}/{attributes.subresource}"
    every = f"*/{attributes.subresource}"
    return _names(rule, "resources", combined) or every in (rule.get("resources") or ())


def _url_matches(url: str, path: str) -> bool:
    if url.endswith("*"):
        return path.startswith(url.rstrip("*"))
    return url == path


def _subject_that_is(user: User, binding: Stored) -> Json | None:
    for subject in binding.obj.get("subjects") or ():
        if _is_user(subject, user, binding.namespace):
            found: Json = subject
            return found
    return None


def _is_user(subject: Json, user: User, namespace: str) -> bool:
    kind, name = subject["kind"], subject["name"]
    if kind == "User":
        return bool(name == user.name)
    if kind == "Group":
        return name in user.groups
    namespace = subject.get("namespace") or namespace
    return bool(namespace) and user.name == f"system:serviceaccount:{namespace}:{name}"


def _not_found(reference: Json) -> str:
    kind = reference["kind"].lower()
    return f'{kind}.rbac.authorization.k8s.io "{reference["name"]}" not found'


def _described(resource: Resource, binding: Stored, subject: Json) -> str:
    reference = binding.obj["roleRef"]
    name = f"{binding.name}/{binding.namespace}" if resource.namespaced else binding.name
    who = subject["name"]
    if subject["kind"] == "ServiceAccount":
        who = f"{who}/{subject.get('namespace') or binding.namespace}"
    role = f'{reference["kind"]} "{reference["name"]}"'
    return f'{resource.kind} "{name}" of {role} to {subject["kind"]} "{who}"'


def _aggregated(texts: Sequence[str]) -> str:
    """Several errors as apimachinery's ``Aggregate`` prints them, without duplicates."""
    unique = list(dict.fromkeys(texts))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"
