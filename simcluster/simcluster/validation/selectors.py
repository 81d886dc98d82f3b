"""Selectors, affinity, tolerations, taints and topology spread constraints."""

from simcluster.apiserver import errors
from simcluster.validation import names, rules
from simcluster.validation.metadata import validate_labels
from simcluster.validation.rules import Errors, Rule
from simcluster.values import Json

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_GREATER_THAN_ZERO = "must be greater than zero"
_NOT_AN_OPERATOR = "not a valid selector operator"
_KEY = rules.has_form("key", names.qualified_name, always=True)
_VALUES = rules.all_have_form("values", names.label_value)


def labels(field: str) -> Rule:
    """A map of labels."""

    def rule(obj: Json, path: str) -> Errors:
        return validate_labels(obj.get(field) or {}, f"{path}.{field}")

    return rule


def _operator(expression: Json, path: str) -> Errors:
    operator, values = expression.get("operator", ""), expression.get("values")
    if operator in {"In", "NotIn"}:
        if not values:
            detail = "must be specified when `operator` is 'In' or 'NotIn'"
            yield errors.required(f"{path}.values", detail)
    elif operator in {"Exists", "DoesNotExist"}:
        if values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield errors.forbidden_field(f"{path}.values", detail)
    else:
        yield errors.invalid_value(f"{path}.operator", operator, _NOT_AN_OPERATOR)


def _node_operator(expression: Json, path: str) -> Errors:
    if expression.get("operator") not in {"Gt", "Lt"}:
        yield from _operator(expression, path)
    elif len(expression.get("values") or ()) != 1:
        detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
        yield errors.required(f"{path}.values", detail)


def _node_field(requirement: Json, path: str) -> Errors:
    operator, values = requirement.get("operator", ""), requirement.get("values") or []
    if operator not in {"In", "NotIn"}:
        yield errors.invalid_value(f"{path}.operator", operator, _NOT_AN_OPERATOR)
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield errors.required(f"{path}.values", detail)
    key = requirement.get("key", "")
    if key != "metadata.name":
        yield errors.invalid_value(f"{path}.key", key, "not a valid field selector key")
        return
    for position, value in enumerate(values):
        yield from rules.named(value, names.dns_subdomain, f"{path}.values[{position}]")


def _has_terms(selector: Json, path: str) -> Errors:
    if not selector.get("nodeSelectorTerms"):
        detail = "must have at least one node selector term"
        yield errors.required(f"{path}.nodeSelectorTerms", detail)


LABEL_SELECTOR = (labels("matchLabels"), rules.each("matchExpressions", _operator, _KEY, _VALUES))
_FIELDS = rules.each("matchFields", _node_field)
_STRICT_TERM = (rules.each("matchExpressions", _node_operator, _KEY, _VALUES), _FIELDS)
_PREFERENCE = (rules.each("matchExpressions", _node_operator, _KEY), _FIELDS)
NODE_SELECTOR = (_has_terms, rules.each("nodeSelectorTerms", *_STRICT_TERM))
"""Unlike a preference, a node selector has its label values checked."""


def _label_keys(term: Json, path: str) -> Errors:
    match, mismatch = term.get("matchLabelKeys") or (), term.get("mismatchLabelKeys") or ()
    for kind, listed in (("matchLabelKeys", match), ("mismatchLabelKeys", mismatch)):
        if listed and term.get("labelSelector") is None:
            detail = "must not be specified when labelSelector is not set"
            yield errors.forbidden_field(f"{path}.{kind}", detail)
        for position, key in enumerate(listed):
            yield from rules.named(key, names.qualified_name, f"{path}.{kind}[{position}]")
    for position, key in enumerate(match):
        if key in mismatch:
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield errors.invalid_value(f"{path}.matchLabelKeys[{position}]", key, detail)


def _namespaces(term: Json, path: str) -> Errors:
    for name in term.get("namespaces") or ():
        yield from rules.named(name, names.dns_label, f"{path}.namespace")


def _weight(weighted: Json, path: str) -> Errors:
    weight = weighted.get("weight", 0)
    if not 1 <= weight <= 100:
        yield errors.invalid_value(f"{path}.weight", weight, "must be in the range 1-100")


_POD_TERM = (
    rules.inside("labelSelector", *LABEL_SELECTOR),
    rules.inside("namespaceSelector", *LABEL_SELECTOR),
    _namespaces,
    _label_keys,
    rules.need("topologyKey", "can not be empty"),
    rules.has_form("topologyKey", names.qualified_name, always=True),
)
_POD_AFFINITY = (
    rules.each(_REQUIRED, *_POD_TERM),
    rules.each(_PREFERRED, _weight, rules.inside("podAffinityTerm", *_POD_TERM, always=True)),
)
AFFINITY = (
    rules.inside(
        "nodeAffinity",
        rules.inside(_REQUIRED, *NODE_SELECTOR),
        rules.each(_PREFERRED, _weight, rules.inside("preference", *_PREFERENCE)),
    ),
    rules.inside("podAffinity", *_POD_AFFINITY),
    rules.inside("podAntiAffinity", *_POD_AFFINITY),
)


def toleration(toleration: Json, path: str) -> Errors:
    """Errors of a toleration."""
    key, operator = toleration.get("key", ""), toleration.get("operator", "")
    effect, value = toleration.get("effect", ""), toleration.get("value", "")
    place = f"{path}.operator"
    if key:
        yield from rules.named(key, names.qualified_name, f"{path}.key")
    elif operator != "Exists":
        detail = (
            'operator must be Exists when `key` is empty, which means "match all values and all '
            'keys"'
        )
        yield errors.invalid_value(place, operator, detail)
    if "tolerationSeconds" in toleration and effect != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield errors.invalid_value(f"{path}.effect", effect, detail)
    if operator in {"", "Equal"}:
        yield from _joined(value, place)
    elif operator != "Exists":
        yield errors.unsupported_value(place, operator, ("Equal", "Exists"))
    elif value:
        yield errors.invalid_value(place, value, "value must be empty when `operator` is 'Exists'")
    if effect and effect not in _EFFECTS:
        yield errors.unsupported_value(f"{path}.effect", effect, _EFFECTS)


def _joined(value: str, path: str) -> Errors:
    if messages := names.label_value(value):
        yield errors.invalid_value(path, value, ";".join(messages))


def validate_taints(taints: list[Json], path: str) -> Errors:
    """Errors of a node's taints."""
    seen = set()
    for position, taint in enumerate(taints):
        place = f"{path}[{position}]"
        key, value = taint.get("key", ""), taint.get("value", "")
        effect = taint.get("effect", "")
        yield from rules.named(key, names.qualified_name, f"{place}.key")
        yield from _joined(value, f"{place}.value")
        if not effect:
            yield errors.required(f"{place}.effect")
        elif effect not in _EFFECTS:
            yield errors.unsupported_value(f"{place}.effect", effect, _EFFECTS)
        if (key, effect) in seen:
            shown = {"Key": key, "Value": value, "Effect": effect, "TimeAdded": None}
            yield errors.duplicate_value(
                place, shown, "taints must be unique by key and effect pair"
            )
        seen.add((key, effect))


def _spread_mode(constraint: Json, path: str) -> Errors:
    when, known = constraint.get("whenUnsatisfiable", ""), ("DoNotSchedule", "ScheduleAnyway")
    if when not in known:
        yield errors.unsupported_value(f"{path}.whenUnsatisfiable", when, known)
    count, place = constraint.get("minDomains"), f"{path}.minDomains"
    if count is None:
        return
    if count <= 0:
        yield errors.invalid_value(place, count, _GREATER_THAN_ZERO)
    if when != "DoNotSchedule":
        detail = "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not " + when
        yield errors.invalid_value(place, count, detail)


def _spread_keys(constraint: Json, path: str) -> Errors:
    if constraint.get("labelSelector") is not None:
        yield from rules.all_have_form("matchLabelKeys", names.qualified_name)(constraint, path)
    elif constraint.get("matchLabelKeys"):
        detail = "must not be specified when labelSelector is not set"
        yield errors.forbidden_field(f"{path}.matchLabelKeys", detail)


def _max_skew(constraint: Json, path: str) -> Errors:
    skew = constraint.get("maxSkew", 0)
    if skew <= 0:
        yield errors.invalid_value(f"{path}.maxSkew", skew, _GREATER_THAN_ZERO)


_SPREAD = (
    _max_skew,
    rules.need_form("topologyKey", names.qualified_name, "can not be empty"),
    _spread_mode,
    rules.one_of("nodeAffinityPolicy", "Honor", "Ignore"),
    rules.one_of("nodeTaintsPolicy", "Honor", "Ignore"),
    _spread_keys,
    rules.inside("labelSelector", *LABEL_SELECTOR),
)


def spread_constraints(spec: Json, path: str) -> Errors:
    """Errors of topology spread constraints, no two of which are for one key and one mode."""
    seen: set[tuple[str, str]] = set()
    for position, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        place = f"{path}.topologySpreadConstraints[{position}]"
        for rule in _SPREAD:
            yield from rule(constraint, place)
        pair = constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", "")
        if pair in seen:
            shown = f"{{{pair[0]}, {pair[1]}}}"
            yield errors.duplicate_value(f"{place}.{{topologyKey, whenUnsatisfiable}}", shown)
        seen.add(pair)
