"""Pod specs, of pods and of templates, and new pods."""

from cachetools import LRUCache

from simcluster.apiserver import errors
from simcluster.store.store import encode
from simcluster.validation import names, rules
from simcluster.validation.containers import containers
from simcluster.validation.metadata import validate_annotations
from simcluster.validation.resources import amounts, requirements
from simcluster.validation.rules import Errors, Rule
from simcluster.validation.selectors import AFFINITY, labels, spread_constraints, toleration
from simcluster.validation.volumes import pod_volumes
from simcluster.values import Json

INT32_MAX = 2**31 - 1
_SYSTEMS = ("linux", "windows")


def _resource_claims(spec: Json, path: str) -> Errors:
    seen: set[str] = set()
    for position, claim in enumerate(spec.get("resourceClaims") or ()):
        place, name = f"{path}.resourceClaims[{position}]", claim.get("name", "")
        if not name:
            yield errors.required(f"{place}.name")
        elif name in seen:
            yield errors.duplicate_value(f"{place}.name", name)
        else:
            yield from rules.named(name, names.dns_label, f"{place}.name")
        seen.add(name)
        count = sum(key in claim for key in ("resourceClaimName", "resourceClaimTemplateName"))
        if count > 1:
            detail = (
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            )
            yield errors.invalid_value(place, claim, detail)
        elif not count:
            detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            yield errors.invalid_value(place, claim, detail)


def _host_network(spec: Json, path: str) -> Errors:
    if not spec.get("hostNetwork"):
        return
    detail = "must match `containerPort` when `hostNetwork` is true"
    for position, container in enumerate(spec.get("containers") or ()):
        for index, port in enumerate(container.get("ports") or ()):
            number = port.get("hostPort")
            if number and number != port.get("containerPort"):
                place = f"{path}.containers[{position}].ports[{index}].hostPort"
                yield errors.invalid_value(place, number, detail)


def _scheduling_gates(spec: Json, path: str) -> Errors:
    seen: set[str] = set()
    for position, gate in enumerate(spec.get("schedulingGates") or ()):
        name, place = gate.get("name", ""), f"{path}.schedulingGates[{position}]"
        yield from rules.named(name, names.qualified_name, place)
        if name in seen:
            yield errors.duplicate_value(place, name)
        seen.add(name)


def _operating_system(spec: Json, path: str) -> Errors:
    system = spec.get("os")
    if system is None:
        return
    name = system.get("name") or ""
    if not name:
        yield errors.required(f"{path}.os.name", "cannot be empty")
    elif name not in _SYSTEMS:
        yield errors.unsupported_value(f"{path}.os", name, _SYSTEMS)


POD_SPEC: tuple[Rule, ...] = (
    pod_volumes,
    _resource_claims,
    containers,
    _host_network,
    rules.one_of("restartPolicy", "Always", "OnFailure", "Never"),
    rules.one_of("dnsPolicy", "ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"),
    labels("nodeSelector"),
    rules.inside("affinity", *AFFINITY),
    rules.each(
        "readinessGates", rules.has_form("conditionType", names.qualified_name, always=True)
    ),
    _scheduling_gates,
    spread_constraints,
    rules.has_form("serviceAccountName", names.dns_subdomain),
    rules.has_form("nodeName", names.dns_subdomain),
    rules.has_form("hostname", names.dns_label),
    rules.has_form("subdomain", names.dns_label),
    rules.has_form("priorityClassName", names.dns_subdomain),
    rules.has_form("runtimeClassName", names.dns_subdomain),
    rules.holds(
        "activeDeadlineSeconds",
        lambda seconds: 1 <= seconds <= INT32_MAX,
        names.in_range(1, INT32_MAX),
    ),
    rules.each("tolerations", toleration),
    rules.one_of("preemptionPolicy", "PreemptLowerPriority", "Never"),
    rules.inside("schedulingGroup", rules.need_form("podGroupName", names.dns_subdomain)),
    amounts("overhead", "{path}[{name}]"),
    rules.inside("resources", requirements),
    _operating_system,
)


def _image(container: Json, path: str) -> Errors:
    image = container.get("image", "")
    if image != image.strip():
        detail = "must not have leading or trailing whitespace"
        yield errors.invalid_value(f"{path}.image", image, detail)


STRICT_SPEC = (*POD_SPEC, rules.each("containers", _image), rules.each("initContainers", _image))
"""A pod's images are read more strictly than a template's."""


def _ephemeral(detail: str) -> Rule:
    def rule(spec: Json, path: str) -> Errors:
        if spec.get("ephemeralContainers"):
            yield errors.forbidden_field(f"{path}.ephemeralContainers", detail)

    return rule


def _gated_node_name(spec: Json, path: str) -> Errors:
    if spec.get("nodeName") and spec.get("schedulingGates"):
        detail = "cannot be set until all schedulingGates have been cleared"
        yield errors.forbidden_field(f"{path}.nodeName", detail)


_NEW_SPEC = (*STRICT_SPEC, _ephemeral("cannot be set on create"), _gated_node_name)
_valid_specs: LRUCache[bytes, bool] = LRUCache(maxsize=4096)
"""Specs that were found valid: pods of one template share one."""


def validate_pod(pod: Json) -> list[errors.FieldError]:
    """Errors of a new pod's spec."""
    key = encode(pod["spec"])
    if key in _valid_specs:
        return []
    found = list(rules.check(pod["spec"], "spec", _NEW_SPEC))
    if not found:
        _valid_specs[key] = True
    return found


def _template_metadata(template: Json, path: str) -> Errors:
    metadata = template.get("metadata") or {}
    yield from labels("labels")(metadata, path)
    yield from validate_annotations(metadata.get("annotations") or {}, f"{path}.annotations")


def template(*further: Rule, has_spec: bool = True) -> Rule:
    """A pod template below ``template``, with further rules for its spec.

    The spec of a StatefulSet's template is not checked (``has_spec=False``): its volumes are claims
    that are still to be made. Its pods are checked one by one.
    """
    whole = (*POD_SPEC, _ephemeral("ephemeral containers not allowed in pod template"))
    spec = rules.inside("spec", *(whole if has_spec else ()), *further, always=True)
    return rules.inside("template", _template_metadata, spec, always=True)


def no_deadline(kind: str) -> Rule:
    """Templates of workloads that run for ever have no deadline."""
    return rules.absent(
        "activeDeadlineSeconds", f"activeDeadlineSeconds in {kind} is not Supported"
    )
