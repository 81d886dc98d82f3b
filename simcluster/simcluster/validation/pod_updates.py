"""Changes of pods: the few that a spec takes, and those of its status and subresources."""

from simcluster.apiserver import errors
from simcluster.validation import names, rules
from simcluster.validation.differences import pod_difference
from simcluster.validation.pods import INT32_MAX, STRICT_SPEC
from simcluster.validation.rules import Errors
from simcluster.values import Json

_FREE = ("activeDeadlineSeconds", "schedulingGates", "tolerations")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_ONLY_ADDITIONS = "only additions are allowed (no mutations or deletions)"
_IMMUTABLE_SPEC = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was previously negative)"
)


def validate_pod_update(new: Json, old: Json) -> list[errors.FieldError]:
    """Errors of a change to a pod."""
    spec, before = new["spec"], old["spec"]
    if spec == before:
        return []
    found = list(rules.check(spec, "spec", STRICT_SPEC))
    for kind in ("containers", "initContainers"):
        if len(spec.get(kind) or ()) != len(before.get(kind) or ()):
            detail = "pod updates may not add or remove containers"
            return [*found, errors.forbidden_field(f"spec.{kind}", detail)]
    deadline = list(_deadline(spec, before))
    found += deadline
    if deadline and "activeDeadlineSeconds" in spec:
        return found
    found += _added_tolerations(spec, before)
    found += _removed_gates(spec, before)
    return [*found, *_fixed(spec, before)]


def _deadline(spec: Json, before: Json) -> Errors:
    path = "spec.activeDeadlineSeconds"
    new, old = spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    if new is None:
        if old is not None:
            yield errors.invalid_value(
                path, None, "must not update from a positive integer to nil value"
            )
    elif not 0 <= new <= INT32_MAX:
        yield errors.invalid_value(path, new, names.in_range(0, INT32_MAX))
    elif old is not None and old < new:
        yield errors.invalid_value(path, new, "must be less than or equal to previous value")


def _without(obj: Json, *fields: str) -> Json:
    return {key: value for key, value in obj.items() if key not in fields}


def _added_tolerations(spec: Json, before: Json) -> Errors:
    kept = [_without(found, "tolerationSeconds") for found in spec.get("tolerations") or ()]
    old = before.get("tolerations") or ()
    if not all(_without(found, "tolerationSeconds") in kept for found in old):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        yield errors.forbidden_field("spec.tolerations", detail)


def _removed_gates(spec: Json, before: Json) -> Errors:
    old = {gate.get("name") for gate in before.get("schedulingGates") or ()}
    for position, gate in enumerate(spec.get("schedulingGates") or ()):
        if gate.get("name") not in old:
            detail = f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'"
            yield errors.forbidden_field(f"spec.schedulingGates[{position}].name", detail)


def _fixed(spec: Json, before: Json) -> Errors:
    """Everything else stays; a gated pod may still narrow where it goes."""
    fixed, kept = _fixed_part(spec), _fixed_part(before)
    grace = "terminationGracePeriodSeconds"
    if kept.get(grace, 0) < 0 and fixed.get(grace) == 1:
        fixed[grace] = kept[grace]
    if before.get("schedulingGates"):
        yield from _narrowed_selector(fixed, kept)
        yield from _narrowed_affinity(fixed, kept)
    if fixed != kept:
        yield errors.forbidden_field("spec", f"{_IMMUTABLE_SPEC}\n{pod_difference(kept, fixed)}")


def _fixed_part(spec: Json) -> Json:
    fixed = _without(spec, *_FREE)
    for kind in ("containers", "initContainers"):
        fixed[kind] = [_without(container, "image") for container in spec.get(kind) or ()]
    return fixed


def _narrowed_selector(fixed: Json, kept: Json) -> Errors:
    new, old = fixed.pop("nodeSelector", None) or {}, kept.pop("nodeSelector", None) or {}
    if not old.items() <= new.items():
        detail = rules.IMMUTABLE if old.keys() <= new.keys() else _ONLY_ADDITIONS
        yield errors.invalid_value("spec.nodeSelector", new, detail)


def _narrowed_affinity(fixed: Json, kept: Json) -> Errors:
    new, old = _pop_required(fixed), _pop_required(kept)
    if old is None or new == old:
        return
    path = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
    terms, before = (new or {}).get("nodeSelectorTerms") or [], old.get("nodeSelectorTerms") or []
    if before and len(terms) != len(before):
        detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        yield errors.invalid_value(path, terms, detail)
        return
    for position, (term, old_term) in enumerate(zip(terms, before, strict=False)):
        for kind in ("matchExpressions", "matchFields"):
            listed = old_term.get(kind) or []
            if (term.get(kind) or [])[: len(listed)] != listed:
                yield errors.invalid_value(f"{path}[{position}]", term, _ONLY_ADDITIONS)
                break


def _pop_required(spec: Json) -> Json | None:
    """Take the node affinity out of a spec; its required part."""
    affinity = dict(spec.pop("affinity", None) or {})
    required: Json | None = (affinity.pop("nodeAffinity", None) or {}).get(_REQUIRED)
    if affinity:
        spec["affinity"] = affinity
    return required


def validate_pod_status_update(new: Json, old: Json) -> list[errors.FieldError]:
    """Errors of a change to a pod's status."""
    return list(_status_errors(new, new.get("status") or {}, old.get("status") or {}))


def _status_errors(new: Json, status: Json, before: Json) -> Errors:
    for position, condition in enumerate(status.get("conditions") or ()):
        kind = condition.get("type", "")
        if kind not in {"PodScheduled", "Ready", "Initialized"}:
            path = f"metadata.conditions[{position}].Type"
            yield from rules.named(kind, names.qualified_name, path)
    nominated = status.get("nominatedNodeName")
    if nominated and nominated != before.get("nominatedNodeName"):
        yield from rules.named(nominated, names.dns_subdomain, "status.nominatedNodeName")
    quality = status.get("qosClass", before.get("qosClass"))
    if quality != before.get("qosClass"):
        yield errors.invalid_value("status.qosClass", quality, rules.IMMUTABLE)
    policy = new["spec"].get("restartPolicy")
    if policy != "Always":
        yield from _restarted(status, before, policy)


def _restarted(status: Json, before: Json, policy: str | None) -> Errors:
    """A container that has ended for good does not run again."""
    running = {
        container.get("name")
        for container in status.get("containerStatuses") or ()
        if not (container.get("state") or {}).get("terminated")
    }
    for position, container in enumerate(before.get("containerStatuses") or ()):
        terminated = (container.get("state") or {}).get("terminated")
        if not terminated or (terminated.get("exitCode") and policy == "OnFailure"):
            continue
        if container.get("name") in running:
            detail = "may not be transitioned to non-terminated state"
            yield errors.forbidden_field(f"status.containerStatuses[{position}].state", detail)
