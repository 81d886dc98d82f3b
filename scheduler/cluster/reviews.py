"""Token and access reviews: whoever holds the token may do everything."""

from typing import Any

from scheduler.cluster.paths import Review

Json = dict[str, Any]

_KINDS = {
    "tokenreviews": "TokenReview",
    "selfsubjectreviews": "SelfSubjectReview",
    "subjectaccessreviews": "SubjectAccessReview",
    "selfsubjectaccessreviews": "SelfSubjectAccessReview",
    "localsubjectaccessreviews": "LocalSubjectAccessReview",
    "selfsubjectrulesreviews": "SelfSubjectRulesReview",
}


def review(target: Review, body: Json, username: str) -> Json:
    """Answer a review posted to ``target``."""
    user = {"username": username, "groups": ["system:masters", "system:authenticated"]}
    status: Json = {"allowed": True}
    if target.plural == "tokenreviews":
        status = {"authenticated": True, "user": user}
    elif target.plural == "selfsubjectreviews":
        status = {"userInfo": user}
    elif target.plural == "selfsubjectrulesreviews":
        rule = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
        status = {"resourceRules": [rule], "nonResourceRules": [], "incomplete": False}
    return {
        "kind": _KINDS[target.plural],
        "apiVersion": f"{target.group}/{target.version}",
        "metadata": {},
        "spec": body.get("spec") or {},
        "status": status,
    }
