"""Defaults and validation of roles and of their bindings to users."""

from typing import Any

from simcluster.apiserver.errors import FieldError, invalid_value, required, unsupported_value
from simcluster.kinds.resources import RBAC

Json = dict[str, Any]

_SUBJECT_KINDS = ("ServiceAccount", "User", "Group")


def validate_role(role: Json) -> list[FieldError]:
    """Errors of a Role: each rule has verbs, API groups and resources."""
    errors = []
    for index, rule in enumerate(role.get("rules") or ()):
        field = f"rules[{index}]"
        if not rule.get("verbs"):
            errors.append(required(f"{field}.verbs", "verbs must contain at least one value"))
        if rule.get("nonResourceURLs"):
            if role["metadata"].get("namespace"):
                detail = "namespaced rules cannot apply to non-resource URLs"
                urls = rule["nonResourceURLs"]
                errors.append(invalid_value(f"{field}.nonResourceURLs", urls, detail))
            continue
        if not rule.get("apiGroups"):
            detail = "resource rules must supply at least one api group"
            errors.append(required(f"{field}.apiGroups", detail))
        if not rule.get("resources"):
            detail = "resource rules must supply at least one resource"
            errors.append(required(f"{field}.resources", detail))
    return errors


def validate_role_update(new: Json, _old: Json) -> list[FieldError]:
    """Errors of a changed role."""
    return validate_role(new)


def set_binding_defaults(binding: Json) -> None:
    """Set the API groups of a binding: RBAC for users, groups and roles."""
    binding.setdefault("roleRef", {}).setdefault("apiGroup", RBAC)
    for subject in binding.get("subjects") or ():
        if subject.get("kind") != "ServiceAccount":
            subject.setdefault("apiGroup", RBAC)


def validate_binding(binding: Json) -> list[FieldError]:
    """Errors of a binding's role and subjects."""
    reference, errors = binding["roleRef"], []
    kinds = ["Role", "ClusterRole"] if binding["metadata"].get("namespace") else ["ClusterRole"]
    if reference.get("kind") not in kinds:
        errors.append(unsupported_value("roleRef.kind", reference.get("kind") or "", kinds))
    if not reference.get("name"):
        errors.append(required("roleRef.name"))
    for index, subject in enumerate(binding.get("subjects") or ()):
        errors += _subject_errors(subject, f"subjects[{index}]", binding)
    return errors


def _subject_errors(subject: Json, field: str, binding: Json) -> list[FieldError]:
    errors = []
    kind = subject.get("kind") or ""
    if not subject.get("name"):
        errors.append(required(f"{field}.name"))
    if kind not in _SUBJECT_KINDS:
        errors.append(unsupported_value(f"{field}.kind", kind, _SUBJECT_KINDS))
    is_namespaced = bool(binding["metadata"].get("namespace"))
    if kind == "ServiceAccount" and not is_namespaced and not subject.get("namespace"):
        errors.append(required(f"{field}.namespace"))
    return errors


def validate_binding_update(new: Json, old: Json) -> list[FieldError]:
    """Errors of a changed binding; its role must not change."""
    errors = validate_binding(new)
    if new["roleRef"] != old["roleRef"]:
        errors.append(invalid_value("roleRef", str(new["roleRef"]), "cannot change roleRef"))
    return errors
