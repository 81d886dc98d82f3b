"""Selectors, affinity, tolerations and taints."""

from typing import Any

from simcluster.apiserver.errors import (
    FieldError,
    duplicate_value,
    forbidden_field,
    invalid_value,
    required,
    unsupported_value,
)
from simcluster.validation import names
from simcluster.validation.metadata import validate_labels

Json = dict[str, Any]

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_NOT_AN_OPERATOR = "not a valid selector operator"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def validate_key(key: str, path: str) -> list[FieldError]:
    """Errors of a label key."""
    return [invalid_value(path, key, message) for message in names.qualified_name(key)]


def validate_label_selector(selector: Json | None, path: str) -> list[FieldError]:
    """Errors of a ``LabelSelector``."""
    if not selector:
        return []
    found = validate_labels(selector.get("matchLabels") or {}, f"{path}.matchLabels")
    for position, expression in enumerate(selector.get("matchExpressions") or ()):
        found += _validate_expression(expression, f"{path}.matchExpressions[{position}]")
    return found


def _validate_expression(expression: Json, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    operator, values = expression.get("operator", ""), expression.get("values") or []
    if operator in {"In", "NotIn"}:
        if not values:
            detail = "must be specified when `operator` is 'In' or 'NotIn'"
            found.append(required(f"{path}.values", detail))
    elif operator in {"Exists", "DoesNotExist"}:
        if values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            found.append(forbidden_field(f"{path}.values", detail))
    else:
        found.append(invalid_value(f"{path}.operator", operator, _NOT_AN_OPERATOR))
    found += validate_key(expression.get("key", ""), f"{path}.key")
    return found + _validate_values(values, f"{path}.values")


def _validate_values(values: list[str], path: str) -> list[FieldError]:
    return [
        invalid_value(f"{path}[{position}]", value, message)
        for position, value in enumerate(values)
        for message in names.label_value(value)
    ]


def _validate_node_requirement(requirement: Json, path: str, is_strict: bool) -> list[FieldError]:
    found: list[FieldError] = []
    operator, values = requirement.get("operator", ""), requirement.get("values") or []
    if operator in {"Gt", "Lt"}:
        if len(values) != 1:
            detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            found.append(required(f"{path}.values", detail))
        found += validate_key(requirement.get("key", ""), f"{path}.key")
        return found + (_validate_values(values, f"{path}.values") if is_strict else [])
    found = _validate_expression(requirement, path)
    if is_strict:
        return found
    return [error for error in found if not error.field.startswith(f"{path}.values[")]


def _validate_node_field(requirement: Json, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    operator, values = requirement.get("operator", ""), requirement.get("values") or []
    if operator in {"In", "NotIn"}:
        if len(values) != 1:
            detail = (
                "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            )
            found.append(required(f"{path}.values", detail))
    else:
        found.append(invalid_value(f"{path}.operator", operator, _NOT_AN_OPERATOR))
    key = requirement.get("key", "")
    if key != "metadata.name":
        found.append(invalid_value(f"{path}.key", key, "not a valid field selector key"))
        return found
    return found + [
        invalid_value(f"{path}.values[{position}]", value, message)
        for position, value in enumerate(values)
        for message in names.dns_subdomain(value)
    ]


def _validate_node_term(term: Json, path: str, is_strict: bool) -> list[FieldError]:
    found: list[FieldError] = []
    for position, requirement in enumerate(term.get("matchExpressions") or ()):
        place = f"{path}.matchExpressions[{position}]"
        found += _validate_node_requirement(requirement, place, is_strict)
    for position, requirement in enumerate(term.get("matchFields") or ()):
        found += _validate_node_field(requirement, f"{path}.matchFields[{position}]")
    return found


def validate_node_selector(selector: Json, path: str) -> list[FieldError]:
    """Errors of a ``NodeSelector``: its terms are all checked to the last label value."""
    terms = selector.get("nodeSelectorTerms") or []
    if not terms:
        detail = "must have at least one node selector term"
        return [required(f"{path}.nodeSelectorTerms", detail)]
    return [
        error
        for position, term in enumerate(terms)
        for error in _validate_node_term(term, f"{path}.nodeSelectorTerms[{position}]", True)
    ]


def _validate_weight(weighted: Json, path: str) -> list[FieldError]:
    weight = weighted.get("weight", 0)
    if 1 <= weight <= 100:
        return []
    return [invalid_value(f"{path}.weight", weight, "must be in the range 1-100")]


def validate_affinity(affinity: Json | None, path: str) -> list[FieldError]:
    """Errors of a pod's affinity."""
    if not affinity:
        return []
    found: list[FieldError] = []
    if node_affinity := affinity.get("nodeAffinity"):
        place = f"{path}.nodeAffinity"
        if _REQUIRED in node_affinity:
            found += validate_node_selector(node_affinity[_REQUIRED], f"{place}.{_REQUIRED}")
        for position, weighted in enumerate(node_affinity.get(_PREFERRED) or ()):
            each = f"{place}.{_PREFERRED}[{position}]"
            found += _validate_weight(weighted, each)
            term = weighted.get("preference") or {}
            found += _validate_node_term(term, f"{each}.preference", False)
    for kind in ("podAffinity", "podAntiAffinity"):
        found += _validate_pod_affinity(affinity.get(kind) or {}, f"{path}.{kind}")
    return found


def _validate_pod_affinity(terms: Json, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    for position, term in enumerate(terms.get(_REQUIRED) or ()):
        found += _validate_pod_term(term, f"{path}.{_REQUIRED}[{position}]")
    for position, weighted in enumerate(terms.get(_PREFERRED) or ()):
        each = f"{path}.{_PREFERRED}[{position}]"
        found += _validate_weight(weighted, each)
        found += _validate_pod_term(
            weighted.get("podAffinityTerm") or {}, f"{each}.podAffinityTerm"
        )
    return found


def _validate_pod_term(term: Json, path: str) -> list[FieldError]:
    found = validate_label_selector(term.get("labelSelector"), f"{path}.labelSelector")
    found += validate_label_selector(term.get("namespaceSelector"), f"{path}.namespaceSelector")
    for name in term.get("namespaces") or ():
        found += [invalid_value(f"{path}.namespace", name, each) for each in names.dns_label(name)]
    found += _validate_label_keys(term, path)
    key = term.get("topologyKey", "")
    if not key:
        found.append(required(f"{path}.topologyKey", "can not be empty"))
    return found + validate_key(key, f"{path}.topologyKey")


def _validate_label_keys(term: Json, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    keys = {kind: term.get(kind) or [] for kind in ("matchLabelKeys", "mismatchLabelKeys")}
    for kind, listed in keys.items():
        if listed and term.get("labelSelector") is None:
            detail = "must not be specified when labelSelector is not set"
            found.append(forbidden_field(f"{path}.{kind}", detail))
        for position, key in enumerate(listed):
            found += validate_key(key, f"{path}.{kind}[{position}]")
    for position, key in enumerate(keys["matchLabelKeys"]):
        if key in keys["mismatchLabelKeys"]:
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            found.append(invalid_value(f"{path}.matchLabelKeys[{position}]", key, detail))
    return found


def _validate_effect(effect: str, path: str) -> list[FieldError]:
    return [] if effect in _EFFECTS else [unsupported_value(path, effect, _EFFECTS)]


def validate_tolerations(tolerations: list[Json], path: str) -> list[FieldError]:
    """Errors of tolerations."""
    found: list[FieldError] = []
    for position, toleration in enumerate(tolerations):
        found += _validate_toleration(toleration, f"{path}[{position}]")
    return found


def _validate_toleration(toleration: Json, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    key, operator = toleration.get("key", ""), toleration.get("operator", "")
    effect, value = toleration.get("effect", ""), toleration.get("value", "")
    if key:
        found += validate_key(key, f"{path}.key")
    elif operator != "Exists":
        detail = (
            'operator must be Exists when `key` is empty, which means "match all values and all '
            'keys"'
        )
        found.append(invalid_value(f"{path}.operator", operator, detail))
    if "tolerationSeconds" in toleration and effect != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        found.append(invalid_value(f"{path}.effect", effect, detail))
    found += _validate_operator(operator, value, f"{path}.operator")
    return found + (_validate_effect(effect, f"{path}.effect") if effect else [])


def _validate_operator(operator: str, value: str, path: str) -> list[FieldError]:
    if operator in {"", "Equal"}:
        messages = names.label_value(value)
        return [invalid_value(path, value, ";".join(messages))] if messages else []
    if operator == "Exists":
        detail = "value must be empty when `operator` is 'Exists'"
        return [invalid_value(path, value, detail)] if value else []
    return [unsupported_value(path, operator, ("Equal", "Exists"))]


def validate_taints(taints: list[Json], path: str) -> list[FieldError]:
    """Errors of a node's taints."""
    found: list[FieldError] = []
    seen = set()
    for position, taint in enumerate(taints):
        place = f"{path}[{position}]"
        key, value = taint.get("key", ""), taint.get("value", "")
        effect = taint.get("effect", "")
        found += validate_key(key, f"{place}.key")
        messages = names.label_value(value)
        if messages:
            found.append(invalid_value(f"{place}.value", value, ";".join(messages)))
        if effect:
            found += _validate_effect(effect, f"{place}.effect")
        else:
            found.append(required(f"{place}.effect"))
        if (key, effect) in seen:
            shown = {"Key": key, "Value": value, "Effect": effect, "TimeAdded": None}
            detail = "taints must be unique by key and effect pair"
            found.append(duplicate_value(place, shown, detail))
        seen.add((key, effect))
    return found


_WHEN_UNSATISFIABLE = ("DoNotSchedule", "ScheduleAnyway")
_INCLUSION = ("Honor", "Ignore")


def validate_spread(constraints: list[Json], path: str) -> list[FieldError]:
    """Errors of topology spread constraints."""
    found: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for position, constraint in enumerate(constraints):
        place = f"{path}[{position}]"
        found += _validate_constraint(constraint, place)
        pair = constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", "")
        if pair in seen:
            found.append(
                duplicate_value(
                    f"{place}.{{topologyKey, whenUnsatisfiable}}", f"{{{pair[0]}, {pair[1]}}}"
                )
            )
        seen.add(pair)
    return found


def _validate_constraint(constraint: Json, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    skew, key = constraint.get("maxSkew", 0), constraint.get("topologyKey", "")
    when = constraint.get("whenUnsatisfiable", "")
    if skew <= 0:
        found.append(invalid_value(f"{path}.maxSkew", skew, "must be greater than zero"))
    if key:
        found += validate_key(key, f"{path}.topologyKey")
    else:
        found.append(required(f"{path}.topologyKey", "can not be empty"))
    if when not in _WHEN_UNSATISFIABLE:
        found.append(unsupported_value(f"{path}.whenUnsatisfiable", when, _WHEN_UNSATISFIABLE))
    found += _validate_min_domains(constraint.get("minDomains"), when, f"{path}.minDomains")
    for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        policy = constraint.get(field)
        if policy is not None and policy not in _INCLUSION:
            found.append(unsupported_value(f"{path}.{field}", policy, _INCLUSION))
    found += _validate_spread_keys(constraint, path)
    return found + validate_label_selector(constraint.get("labelSelector"), f"{path}.labelSelector")


def _validate_min_domains(count: int | None, when: str, path: str) -> list[FieldError]:
    if count is None:
        return []
    found = []
    if count <= 0:
        found.append(invalid_value(path, count, "must be greater than zero"))
    if when != "DoNotSchedule":
        detail = "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not " + when
        found.append(invalid_value(path, count, detail))
    return found


def _validate_spread_keys(constraint: Json, path: str) -> list[FieldError]:
    keys = constraint.get("matchLabelKeys") or []
    if keys and constraint.get("labelSelector") is None:
        detail = "must not be specified when labelSelector is not set"
        return [forbidden_field(f"{path}.matchLabelKeys", detail)]
    return [
        error
        for position, key in enumerate(keys)
        for error in validate_key(key, f"{path}.matchLabelKeys[{position}]")
    ]
