"""Pod groups and Workloads: policies, constraints and claims, which never change.

Follows the declarative validation of ``scheduling.k8s.io/v1alpha2`` in v1.36.
"""

from simcluster.apiserver import errors
from simcluster.validation import device_parts as parts
from simcluster.validation import names, rules
from simcluster.validation.rules import Errors, UpdateRule
from simcluster.values import Json

_MAX_TEMPLATES = 8
_MAX_CLAIMS = 4
_MAX_TOPOLOGY_KEYS = 1
_MAX_PRIORITY = 1_000_000_000
_POLICIES = ("basic", "gang")
_SOURCES = ("resourceClaimName", "resourceClaimTemplateName")


def _listed(fields: tuple[str, ...]) -> str:
    return ", ".join(f"`{field}`" for field in fields)


def _one_of(obj: Json, path: str, members: tuple[str, ...]) -> Errors:
    """Exactly one member of a union is set."""
    found = tuple(member for member in members if member in obj)
    if not found:
        yield errors.invalid_value(path, "", f"must specify one of: {_listed(members)}")
    elif len(found) > 1:
        detail = f"must specify exactly one of: {_listed(members)}"
        yield errors.invalid_value(path, f"{{{_listed(found)}}}", detail)


def _min_count(gang: Json, path: str) -> Errors:
    count, place = gang.get("minCount") or 0, f"{path}.minCount"
    if count == 0:
        yield errors.required(place)
    elif count < 0:
        yield errors.invalid_value(place, count, "must be greater than or equal to 1")


def _policy(policy: Json, path: str) -> Errors:
    yield from _one_of(policy, path, _POLICIES)
    yield from rules.inside("gang", _min_count)(policy, path)


def _claim(claim: Json, path: str) -> Errors:
    yield from parts.at("name", parts.label)(claim, path)
    yield from _one_of(claim, path, _SOURCES)
    for field in _SOURCES:
        yield from rules.has_form(field, names.dns_subdomain)(claim, path)


def _label_key(value: str, path: str) -> Errors:
    return rules.named(value, names.qualified_name, path)


_SPEC = (
    rules.inside("schedulingPolicy", _policy, always=True),
    rules.inside(
        "schedulingConstraints",
        parts.each_item("topology", parts.at("key", _label_key), limit=_MAX_TOPOLOGY_KEYS),
    ),
    parts.each_item("resourceClaims", _claim, limit=_MAX_CLAIMS),
    parts.unique("resourceClaims", parts.by_name, _MAX_CLAIMS),
    rules.one_of("disruptionMode", "Pod", "PodGroup"),
    rules.has_form("priorityClassName", names.dns_subdomain),
    rules.holds(
        "priority",
        lambda number: number <= _MAX_PRIORITY,
        f"must be less than or equal to {_MAX_PRIORITY}",
    ),
)


def _template_reference(reference: Json, path: str) -> Errors:
    if "workload" not in reference:
        yield errors.invalid_value(path, "", "must specify one of: `workload`")
    named = (
        parts.at("workloadName", lambda value, at: rules.named(value, names.dns_subdomain, at)),
        parts.at("podGroupTemplateName", parts.label),
    )
    yield from rules.inside("workload", *named)(reference, path)


def _templates(spec: Json, path: str) -> Errors:
    if not spec.get("podGroupTemplates"):
        yield errors.required(f"{path}.podGroupTemplates")
    name = parts.at("name", parts.label)
    rule = parts.each_item(
        "podGroupTemplates",
        name,
        lambda template, place: rules.check(template, place, _SPEC),
        limit=_MAX_TEMPLATES,
    )
    yield from rule(spec, path)
    yield from parts.unique("podGroupTemplates", parts.by_name, _MAX_TEMPLATES)(spec, path)


_CONTROLLER = rules.inside(
    "controllerRef",
    rules.has_form("apiGroup", names.dns_subdomain),
    rules.need_form("kind", names.path_segment),
    rules.need_form("name", names.path_segment),
)
_FIXED = (
    "podGroupTemplateRef",
    "schedulingPolicy",
    "schedulingConstraints",
    "resourceClaims",
    "disruptionMode",
    "priorityClassName",
    "priority",
)


def _fixed(*fields: str) -> tuple[UpdateRule, ...]:
    return tuple(rules.fixed(f"spec.{field}") for field in fields)


def _controller_kept(new: Json, old: Json) -> Errors:
    """A reference to a controller may be added, but not changed."""
    if old["spec"].get("controllerRef"):
        yield from rules.fixed("spec.controllerRef")(new, old)
    else:
        yield from rules.inside("spec", _CONTROLLER)(new, "")


POD_GROUPS = {
    "podgroups.scheduling.k8s.io": rules.validation(
        rules.inside(
            "spec", rules.inside("podGroupTemplateRef", _template_reference), *_SPEC, always=True
        ),
        before=_fixed(*_FIXED),
        revalidates=False,
    ),
    "workloads.scheduling.k8s.io": rules.validation(
        rules.inside("spec", _CONTROLLER, _templates, always=True),
        before=(_controller_kept, *_fixed("podGroupTemplates")),
        revalidates=False,
    ),
}
