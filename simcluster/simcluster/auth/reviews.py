"""Answers token and access reviews."""

from typing import Any

from simcluster.apiserver.errors import bad_request, invalid, invalid_value
from simcluster.apiserver.paths import Review
from simcluster.auth.access import Access
from simcluster.auth.request_attributes import Attributes
from simcluster.auth.users import User

Json = dict[str, Any]


def review(target: Review, body: Json, user: User, access: Access, now: str) -> Json:
    """Answer a review that ``user`` posted to ``target`` at the time ``now``.

    Raises:
        ApiError: 400 or 422, the review is incomplete.
    """
    spec: Json = body.get("spec") or {}
    _check_spec(target, spec)
    is_of_self = target.plural == "selfsubjectreviews"
    return {
        "kind": target.kind,
        "apiVersion": f"{target.group}/{target.version}",
        "metadata": _metadata(target, now),
        **({} if is_of_self else {"spec": spec}),
        "status": _status(target.plural, spec, user, access),
    }


def _metadata(target: Review, now: str) -> Json:
    if target.plural == "selfsubjectreviews":
        return {"creationTimestamp": now}
    return {"namespace": target.namespace} if target.namespace else {}


_BOTH = "cannot be specified in combination with resourceAttributes"
_NEITHER = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
_NOBODY = "at least one of user or group must be specified"


def _check_spec(target: Review, spec: Json) -> None:
    if target.plural == "tokenreviews" and not spec.get("token"):
        raise bad_request("token is required for TokenReview in authentication")
    if target.plural == "selfsubjectrulesreviews" and not spec.get("namespace"):
        raise bad_request("no namespace on request")
    if not target.plural.endswith("accessreviews"):
        return
    found = []
    other = spec.get("nonResourceAttributes")
    if "resourceAttributes" in spec and other is not None:
        found.append(invalid_value("spec.nonResourceAttributes", other, _BOTH))
    if "resourceAttributes" not in spec and other is None:
        found.append(invalid_value("spec.resourceAttributes", None, _NEITHER))
    is_of_self = target.plural.startswith("self")
    if not is_of_self and not spec.get("user") and not spec.get("groups"):
        found.append(invalid_value("spec.user", "", _NOBODY))
    if found:
        raise invalid(target.group, target.kind, "", found)


def _status(plural: str, spec: Json, user: User, access: Access) -> Json:
    if plural == "tokenreviews":
        return _token_status(access.user_of_token(spec.get("token") or ""))
    if plural == "selfsubjectreviews":
        return {"userInfo": _user_info(user)}
    if plural == "selfsubjectrulesreviews":
        return _rules_status(user, spec.get("namespace") or "", access)
    if plural != "selfsubjectaccessreviews":
        user = User(spec.get("user") or "", tuple(spec.get("groups") or ()))
    return _access_status(user, spec, access)


def _user_info(user: User) -> Json:
    return {"username": user.name, "groups": list(user.groups)}


def _token_status(user: User | None) -> Json:
    if user is None:
        return {"user": {}, "error": "invalid bearer token"}
    return {"authenticated": True, "user": _user_info(user)}


def _access_status(user: User, spec: Json, access: Access) -> Json:
    decision = access.decide(user, _attributes(spec))
    status: Json = {"allowed": decision.is_allowed}
    if decision.reason:
        status["reason"] = decision.reason
    return status


def _attributes(spec: Json) -> Attributes:
    wanted = spec.get("resourceAttributes")
    if wanted is None:
        wanted = spec.get("nonResourceAttributes") or {}
        return Attributes(wanted.get("verb", ""), wanted.get("path", ""))
    fields = ("group", "namespace", "resource", "subresource", "name")
    values = {field: wanted.get(field, "") for field in fields}
    return Attributes(wanted.get("verb", ""), "", is_resource_request=True, **values)


def _rules_status(user: User, namespace: str, access: Access) -> Json:
    if access.authorizer is None:
        everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
        everywhere = {"verbs": ["*"], "nonResourceURLs": ["*"]}
        return {
            "resourceRules": [everything],
            "nonResourceRules": [everywhere],
            "incomplete": False,
        }
    rules = access.authorizer.rules_for(user, namespace)
    return {
        "resourceRules": [rule for rule in rules if rule.get("resources")],
        "nonResourceRules": [rule for rule in rules if rule.get("nonResourceURLs")],
        "incomplete": False,
    }
