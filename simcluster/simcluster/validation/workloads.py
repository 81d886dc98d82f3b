"""Workloads: selectors that match their templates, counts, strategies, and what stays fixed."""

from typing import Any

from simcluster.apiserver.errors import (
    FieldError,
    forbidden_field,
    invalid_value,
    required,
    unsupported_value,
)
from simcluster.store.selectors import match_label_selector
from simcluster.validation.pods import validate_template, validate_template_metadata
from simcluster.validation.selectors import validate_label_selector

Json = dict[str, Any]

_NOT_NEGATIVE = "must be greater than or equal to 0"
_EMPTY_SELECTOR = "empty selector is invalid for {kind}"
_MISMATCH = "`selector` does not match template `labels`"
_IMMUTABLE_STATEFUL_SET = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
    "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
    "'minReadySeconds' are forbidden"
)
_CHANGEABLE_STATEFUL_SET = frozenset(
    [
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    ]
)


def not_negative(spec: Json, field: str, path: str = "spec") -> list[FieldError]:
    """Errors of a count that must not be negative."""
    value = spec.get(field, 0)
    return [invalid_value(f"{path}.{field}", value, _NOT_NEGATIVE)] if value < 0 else []


def _validate_selector(spec: Json, kind: str) -> list[FieldError]:
    selector = spec.get("selector")
    if selector is None:
        return [required("spec.selector")]
    found = validate_label_selector(selector, "spec.selector")
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        detail = _EMPTY_SELECTOR.format(kind=kind)
        found.append(invalid_value("spec.selector", selector, detail))
    return found


def _validate_template(spec: Json, kind: str) -> list[FieldError]:
    template, selector = spec.get("template") or {}, spec.get("selector")
    labels = (template.get("metadata") or {}).get("labels") or {}
    found: list[FieldError] = []
    takes_all = selector is not None and not any(selector.values())
    if not takes_all and not (selector and match_label_selector(selector, labels)):
        found.append(invalid_value("spec.template.metadata.labels", labels or None, _MISMATCH))
    # A StatefulSet's volumes are claims still to be made: its pods are checked one by one.
    check = validate_template_metadata if kind == "StatefulSet" else validate_template
    found += check(template, "spec.template")
    policy = (template.get("spec") or {}).get("restartPolicy", "Always")
    if policy != "Always":
        found.append(unsupported_value("spec.template.spec.restartPolicy", policy, ("Always",)))
    if "activeDeadlineSeconds" in (template.get("spec") or {}):
        detail = f"activeDeadlineSeconds in {kind} is not Supported"
        found.append(forbidden_field("spec.template.spec.activeDeadlineSeconds", detail))
    return found


def validate_deployment(deployment: Json) -> list[FieldError]:
    """Errors of a Deployment."""
    spec = deployment["spec"]
    found = not_negative(spec, "replicas")
    found += _validate_selector(spec, "deployment")
    found += _validate_template(spec, "ReplicaSet")
    found += _validate_strategy(spec.get("strategy") or {})
    for field in ("minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"):
        found += not_negative(spec, field)
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
        detail = "must be greater than minReadySeconds"
        found.append(invalid_value("spec.progressDeadlineSeconds", deadline, detail))
    return found


def _validate_strategy(strategy: Json) -> list[FieldError]:
    kind, rolling = strategy.get("type", ""), strategy.get("rollingUpdate")
    if kind == "Recreate":
        if rolling is None:
            return []
        detail = "may not be specified when strategy `type` is 'Recreate'"
        return [forbidden_field("spec.strategy.rollingUpdate", detail)]
    if kind != "RollingUpdate":
        known = ("Recreate", "RollingUpdate")
        return [unsupported_value("spec.strategy.type", kind, known)]
    path, found = "spec.strategy.rollingUpdate", []
    for field in ("maxUnavailable", "maxSurge"):
        found += validate_count_or_percent((rolling or {}).get(field, 0), f"{path}.{field}")
    if all(_is_nothing((rolling or {}).get(field)) for field in ("maxUnavailable", "maxSurge")):
        detail = "may not be 0 when `maxSurge` is 0"
        value = (rolling or {}).get("maxUnavailable", 0)
        found.append(invalid_value(f"{path}.maxUnavailable", value, detail))
    return found


def _is_nothing(value: object) -> bool:
    return value in {0, "0%", None}


def validate_count_or_percent(value: int | str, path: str) -> list[FieldError]:
    """Errors of a number of pods, or a part of all in percent."""
    if isinstance(value, int):
        return [invalid_value(path, value, _NOT_NEGATIVE)] if value < 0 else []
    if value.endswith("%") and value[:-1].isdigit():
        if int(value[:-1]) > 100 and path.endswith("Unavailable"):
            return [invalid_value(path, value, "must not be greater than 100%")]
        return []
    detail = (
        "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or "
        "'93%', regex used for validation is '[0-9]+%')"
    )
    return [invalid_value(path, value, detail)]


def validate_replica_set(workload: Json) -> list[FieldError]:
    """Errors of a ReplicaSet."""
    spec = workload["spec"]
    found = not_negative(spec, "replicas") + not_negative(spec, "minReadySeconds")
    return found + _validate_selector(spec, "replica set") + _validate_template(spec, "ReplicaSet")


def validate_replication_controller(workload: Json) -> list[FieldError]:
    """Errors of a ReplicationController, whose selector is a plain map."""
    spec = workload["spec"]
    found = not_negative(spec, "minReadySeconds")
    if not spec.get("selector"):
        found.append(required("spec.selector"))
    found += not_negative(spec, "replicas")
    selector = {"matchLabels": spec.get("selector") or {}}
    return found + _validate_template({**spec, "selector": selector}, "ReplicationController")


def validate_stateful_set(workload: Json) -> list[FieldError]:
    """Errors of a StatefulSet."""
    spec = workload["spec"]
    found: list[FieldError] = []
    policies = ("OrderedReady", "Parallel")
    policy = spec.get("podManagementPolicy", "OrderedReady")
    if policy not in policies:
        detail = f"must be '{policies[0]}' or '{policies[1]}'"
        found.append(invalid_value("spec.podManagementPolicy", policy, detail))
    update = spec.get("updateStrategy") or {}
    if update.get("type") not in {"RollingUpdate", "OnDelete"}:
        shown = {"Type": update.get("type", ""), "RollingUpdate": update.get("rollingUpdate")}
        detail = "must be 'RollingUpdate' or 'OnDelete'"
        found.append(invalid_value("spec.updateStrategy", shown, detail))
    found += not_negative(spec, "replicas") + not_negative(spec, "minReadySeconds")
    return found + _validate_selector(spec, "statefulset") + _validate_template(spec, "StatefulSet")


def validate_daemon_set(workload: Json) -> list[FieldError]:
    """Errors of a DaemonSet."""
    spec = workload["spec"]
    found = [] if "selector" not in spec else _validate_selector(spec, "daemonset")
    found += _validate_template(spec, "DaemonSet") + not_negative(spec, "minReadySeconds")
    found += _validate_daemon_strategy(spec.get("updateStrategy") or {})
    return found + not_negative(spec, "revisionHistoryLimit")


def _validate_daemon_strategy(strategy: Json) -> list[FieldError]:
    kind, rolling = strategy.get("type", ""), strategy.get("rollingUpdate")
    path = "spec.updateStrategy"
    if kind == "OnDelete":
        return []
    if kind != "RollingUpdate":
        shown = {"Type": kind, "RollingUpdate": rolling}
        return [unsupported_value(path, shown, ("RollingUpdate", "OnDelete"))]
    counts = {field: (rolling or {}).get(field) for field in ("maxUnavailable", "maxSurge")}
    found: list[FieldError] = []
    for field, count in counts.items():
        found += validate_count_or_percent(count or 0, f"{path}.rollingUpdate.{field}")
    place = f"{path}.rollingUpdate"
    if all(map(_is_nothing, counts.values())):
        found.append(required(f"{place}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    elif not any(map(_is_nothing, counts.values())):
        detail = "may not be set when maxUnavailable is non-zero"
        found.append(invalid_value(f"{place}.maxSurge", counts["maxSurge"], detail))
    return found


def validate_selector_kept(new: Json, old: Json) -> list[FieldError]:
    """Errors of a changed selector, which is fixed."""
    selector = new["spec"].get("selector")
    if selector == old["spec"].get("selector"):
        return []
    return [invalid_value("spec.selector", selector, "field is immutable")]


def validate_stateful_set_update(new: Json, old: Json) -> list[FieldError]:
    """Errors of a changed StatefulSet."""
    found = validate_stateful_set(new)
    spec, before = new["spec"], old["spec"]
    if any(
        spec.get(field) != before.get(field)
        for field in {*spec, *before}
        if field not in _CHANGEABLE_STATEFUL_SET
    ):
        found.append(forbidden_field("spec", _IMMUTABLE_STATEFUL_SET))
    return found


def validate_job(job: Json) -> list[FieldError]:
    """Errors of a Job."""
    spec = job["spec"]
    found: list[FieldError] = []
    for field in (
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
    ):
        found += not_negative(spec, field)
    mode, known = spec.get("completionMode", "NonIndexed"), ("NonIndexed", "Indexed")
    if mode not in known:
        found.append(unsupported_value("spec.completionMode", mode, known))
    elif mode == "Indexed" and "completions" not in spec:
        detail = "when completion mode is Indexed"
        found.append(required("spec.completions", detail))
    template = spec.get("template") or {}
    found += validate_template(template, "spec.template")
    policy = (template.get("spec") or {}).get("restartPolicy", "")
    if policy == "Always":
        path, known = "spec.template.spec.restartPolicy", ("OnFailure", "Never")
        found.append(required(path, "valid values: " + ", ".join(f'"{word}"' for word in known)))
    labels = (template.get("metadata") or {}).get("labels") or {}
    if spec.get("selector") and not match_label_selector(spec["selector"], labels):
        found.append(invalid_value("spec.template.metadata.labels", labels, _MISMATCH))
    return found


def validate_job_update(new: Json, old: Json) -> list[FieldError]:
    """Errors of a changed Job: what it runs stays as it is."""
    found = validate_job(new)
    spec, before = new["spec"], old["spec"]
    fixed = ["selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex"]
    if spec.get("completionMode") != "Indexed":
        fixed.insert(0, "completions")
    if not _may_change_template(old):
        fixed.insert(2, "template")
    for field in fixed:
        if spec.get(field) != before.get(field):
            found.append(invalid_value(f"spec.{field}", spec.get(field), "field is immutable"))
    return found


def _may_change_template(job: Json) -> bool:
    """A suspended Job that has not run yet may still be told where to run."""
    return bool(job["spec"].get("suspend")) and not (job.get("status") or {}).get("startTime")
