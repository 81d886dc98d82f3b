"""Workloads: selectors that match their templates, counts, strategies, and what stays fixed."""

from simcluster.apiserver import errors
from simcluster.store.selectors import match_label_selector
from simcluster.validation import rules
from simcluster.validation.pods import no_deadline, template
from simcluster.validation.rules import Errors, Rule
from simcluster.validation.selectors import LABEL_SELECTOR
from simcluster.values import Json

_MISMATCH = "`selector` does not match template `labels`"
_CHANGEABLE_STATEFUL_SET = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
_IMMUTABLE_STATEFUL_SET = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
    "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
    "'minReadySeconds' are forbidden"
)


def _selector(kind: str) -> Rule:
    def rule(spec: Json, path: str) -> Errors:
        selector, place = spec.get("selector"), f"{path}.selector"
        if selector is None:
            yield errors.required(place)
            return
        yield from rules.check(selector, place, LABEL_SELECTOR)
        if not any(selector.get(field) for field in ("matchLabels", "matchExpressions")):
            yield errors.invalid_value(place, selector, f"empty selector is invalid for {kind}")

    return rule


def _labels(spec: Json) -> Json:
    return ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}


def _selects_template(spec: Json, path: str) -> Errors:
    selector, labels = spec.get("selector"), _labels(spec)
    takes_all = selector is not None and not any(selector.values())
    if not takes_all and not (selector and match_label_selector(selector, labels)):
        yield errors.invalid_value(f"{path}.template.metadata.labels", labels or None, _MISMATCH)


def _template(kind: str, *, has_spec: bool = True) -> tuple[Rule, ...]:
    restarts = rules.one_of("restartPolicy", "Always")
    return _selects_template, template(restarts, no_deadline(kind), has_spec=has_spec)


def count_or_percent(field: str) -> Rule:
    """A number of pods, or a percentage of all."""

    def rule(obj: Json, path: str) -> Errors:
        value, place = obj.get(field), f"{path}.{field}"
        if value is None or isinstance(value, int):
            yield from rules.check(obj, path, rules.not_negative(field))
        elif not (value.endswith("%") and value[:-1].isdigit()):
            detail = (
                "a valid percent string must be a numeric string followed by an ending '%' (e.g. "
                "'1%',  or '93%', regex used for validation is '[0-9]+%')"
            )
            yield errors.invalid_value(place, value, detail)
        elif int(value[:-1]) > 100 and field.endswith("Unavailable"):
            yield errors.invalid_value(place, value, "must not be greater than 100%")

    return rule


_BOUNDS = (count_or_percent("maxUnavailable"), count_or_percent("maxSurge"))


def _is_nothing(value: object) -> bool:
    return value in {0, "0%", None}


def _deployment_strategy(spec: Json, path: str) -> Errors:
    strategy, path = spec.get("strategy") or {}, f"{path}.strategy"
    kind, rolling = strategy.get("type", ""), strategy.get("rollingUpdate")
    if kind == "Recreate":
        if rolling is not None:
            detail = "may not be specified when strategy `type` is 'Recreate'"
            yield errors.forbidden_field(f"{path}.rollingUpdate", detail)
        return
    if kind != "RollingUpdate":
        yield errors.unsupported_value(f"{path}.type", kind, ("Recreate", "RollingUpdate"))
        return
    rolling, path = rolling or {}, f"{path}.rollingUpdate"
    yield from rules.check(rolling, path, _BOUNDS)
    if _is_nothing(rolling.get("maxUnavailable")) and _is_nothing(rolling.get("maxSurge")):
        detail, value = "may not be 0 when `maxSurge` is 0", rolling.get("maxUnavailable", 0)
        yield errors.invalid_value(f"{path}.maxUnavailable", value, detail)


def _progress_deadline(spec: Json, path: str) -> Errors:
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
        detail = "must be greater than minReadySeconds"
        yield errors.invalid_value(f"{path}.progressDeadlineSeconds", deadline, detail)


def _daemon_strategy(spec: Json, path: str) -> Errors:
    strategy, path = spec.get("updateStrategy") or {}, f"{path}.updateStrategy"
    kind, rolling = strategy.get("type", ""), strategy.get("rollingUpdate")
    if kind == "OnDelete":
        return
    if kind != "RollingUpdate":
        shown = {"Type": kind, "RollingUpdate": rolling}
        yield errors.unsupported_value(path, shown, ("RollingUpdate", "OnDelete"))
        return
    rolling, path = rolling or {}, f"{path}.rollingUpdate"
    yield from rules.check(rolling, path, _BOUNDS)
    surge = rolling.get("maxSurge")
    are_nothing = [_is_nothing(rolling.get("maxUnavailable")), _is_nothing(surge)]
    if all(are_nothing):
        yield errors.required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0")
    elif not any(are_nothing):
        detail = "may not be set when maxUnavailable is non-zero"
        yield errors.invalid_value(f"{path}.maxSurge", surge, detail)


def _stateful_strategies(spec: Json, path: str) -> Errors:
    policy = spec.get("podManagementPolicy", "OrderedReady")
    if policy not in {"OrderedReady", "Parallel"}:
        detail = "must be 'OrderedReady' or 'Parallel'"
        yield errors.invalid_value(f"{path}.podManagementPolicy", policy, detail)
    update = spec.get("updateStrategy") or {}
    if update.get("type") not in {"RollingUpdate", "OnDelete"}:
        shown = {"Type": update.get("type", ""), "RollingUpdate": update.get("rollingUpdate")}
        detail = "must be 'RollingUpdate' or 'OnDelete'"
        yield errors.invalid_value(f"{path}.updateStrategy", shown, detail)


def _controller_template(spec: Json, path: str) -> Errors:
    """A ReplicationController's selector is a plain map."""
    selector = {"matchLabels": spec.get("selector") or {}}
    shown = {**spec, "selector": selector}
    return rules.check(shown, path, _template("ReplicationController"))


def _daemon_selector(spec: Json, path: str) -> Errors:
    if "selector" in spec:
        yield from _selector("daemonset")(spec, path)


def _completions(spec: Json, path: str) -> Errors:
    if spec.get("completionMode") == "Indexed" and "completions" not in spec:
        yield errors.required(f"{path}.completions", "when completion mode is Indexed")


def _job_restarts(spec: Json, path: str) -> Errors:
    if spec.get("restartPolicy", "") == "Always":
        yield errors.required(f"{path}.restartPolicy", 'valid values: "OnFailure", "Never"')


def _job_selector(spec: Json, path: str) -> Errors:
    selector, labels = spec.get("selector"), _labels(spec)
    if selector and not match_label_selector(selector, labels):
        yield errors.invalid_value(f"{path}.template.metadata.labels", labels, _MISMATCH)


_DEPLOYMENT = rules.inside(
    "spec",
    *rules.not_negative("replicas"),
    _selector("deployment"),
    *_template("ReplicaSet"),
    _deployment_strategy,
    *rules.not_negative("minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"),
    _progress_deadline,
)
_REPLICA_SET = rules.inside(
    "spec",
    *rules.not_negative("replicas", "minReadySeconds"),
    _selector("replica set"),
    *_template("ReplicaSet"),
)
_REPLICATION_CONTROLLER = rules.inside(
    "spec",
    *rules.not_negative("minReadySeconds"),
    rules.need("selector"),
    *rules.not_negative("replicas"),
    _controller_template,
)
_STATEFUL_SET = rules.inside(
    "spec",
    _stateful_strategies,
    *rules.not_negative("replicas", "minReadySeconds"),
    _selector("statefulset"),
    *_template("StatefulSet", has_spec=False),
)
_DAEMON_SET = rules.inside(
    "spec",
    _daemon_selector,
    *_template("DaemonSet"),
    *rules.not_negative("minReadySeconds"),
    _daemon_strategy,
    *rules.not_negative("revisionHistoryLimit"),
)
_JOB = rules.inside(
    "spec",
    *rules.not_negative(
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
    ),
    rules.one_of("completionMode", "NonIndexed", "Indexed"),
    _completions,
    template(_job_restarts),
    _job_selector,
)


def _stateful_set_kept(new: Json, old: Json) -> Errors:
    specs = [
        {key: value for key, value in obj["spec"].items() if key not in _CHANGEABLE_STATEFUL_SET}
        for obj in (new, old)
    ]
    if specs[0] != specs[1]:
        yield errors.forbidden_field("spec", _IMMUTABLE_STATEFUL_SET)


def _job_kept(new: Json, old: Json) -> Errors:
    """The pods of a Job stay as they are; one that is suspended and has not run may be changed."""
    spec = new["spec"]
    fields = [] if spec.get("completionMode") == "Indexed" else ["completions"]
    fields += ["selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex"]
    if not old["spec"].get("suspend") or (old.get("status") or {}).get("startTime"):
        fields.insert(2, "template")
    for field in fields:
        yield from rules.fixed(f"spec.{field}")(new, old)


_SELECTOR_KEPT = (rules.fixed("spec.selector"),)
WORKLOADS = {
    "deployments.apps": rules.validation(_DEPLOYMENT, after=_SELECTOR_KEPT),
    "replicasets.apps": rules.validation(_REPLICA_SET, after=_SELECTOR_KEPT),
    "replicationcontrollers": rules.validation(_REPLICATION_CONTROLLER),
    "statefulsets.apps": rules.validation(_STATEFUL_SET, after=(_stateful_set_kept,)),
    "daemonsets.apps": rules.validation(_DAEMON_SET, after=_SELECTOR_KEPT),
    "jobs.batch": rules.validation(_JOB, after=(_job_kept,)),
}
