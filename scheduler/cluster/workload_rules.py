"""Defaults and validation of workloads: what makes pods from a template."""

from typing import Any

from scheduler.cluster.errors import FieldError, invalid_value, required
from scheduler.cluster.object_meta import new_uid
from scheduler.cluster.pod_defaults import set_pod_spec_defaults
from scheduler.cluster.pod_rules import validate_pod_spec
from scheduler.cluster.store import Store

Json = dict[str, Any]


def _set_template_defaults(spec: Json) -> None:
    template = spec.setdefault("template", {})
    template.setdefault("metadata", {})
    set_pod_spec_defaults(template.setdefault("spec", {}))


def set_deployment_defaults(deployment: Json) -> None:
    """A Deployment: one replica, rolling by a quarter."""
    spec = deployment.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)
    strategy = spec.setdefault("strategy", {})
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    _set_template_defaults(spec)
    deployment.setdefault("status", {})


def set_replicated_defaults(workload: Json) -> None:
    """A ReplicaSet: one replica."""
    spec = workload.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    _set_template_defaults(spec)
    workload.setdefault("status", {"replicas": 0})


def set_controller_defaults(controller: Json) -> None:
    """A ReplicationController: it selects by its template's labels."""
    set_replicated_defaults(controller)
    spec = controller["spec"]
    labels = spec["template"]["metadata"].get("labels")
    if labels and not spec.get("selector"):
        spec["selector"] = dict(labels)


def set_stateful_set_defaults(workload: Json) -> None:
    """A StatefulSet: in order, rolling."""
    set_replicated_defaults(workload)
    spec = workload["spec"]
    spec.setdefault("podManagementPolicy", "OrderedReady")
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("updateStrategy", {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}})


def set_daemon_set_defaults(workload: Json) -> None:
    """A DaemonSet: rolling one by one."""
    spec = workload.setdefault("spec", {})
    _set_template_defaults(spec)
    spec.setdefault("revisionHistoryLimit", 10)
    rolling = {"maxUnavailable": 1, "maxSurge": 0}
    spec.setdefault("updateStrategy", {"type": "RollingUpdate", "rollingUpdate": rolling})
    counts = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled")
    workload.setdefault("status", {**dict.fromkeys(counts, 0), "numberReady": 0})


def set_job_defaults(job: Json) -> None:
    """A Job: one pod, six retries."""
    spec = job.setdefault("spec", {})
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("podReplacementPolicy", "TerminatingOrFailed")
    _set_template_defaults(spec)
    job.setdefault("status", {})


def admit_job(_store: Store, job: Json) -> None:
    """Give the job's pods labels of their own and select by them."""
    if job["spec"].get("manualSelector"):
        return
    uid, name = job["metadata"].get("uid") or new_uid(), job["metadata"]["name"]
    labels = job["spec"]["template"]["metadata"].setdefault("labels", {})
    for prefix in ("", "batch.kubernetes.io/"):
        labels[f"{prefix}controller-uid"] = uid
        labels[f"{prefix}job-name"] = name
    job["spec"]["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}


def validate_workload(workload: Json) -> list[FieldError]:
    """Errors of a workload's selector and pod template."""
    spec = workload["spec"]
    template = spec["template"]
    errors: list[FieldError] = []
    if not spec.get("selector"):
        errors.append(required("spec.selector"))
    elif any(
        (template["metadata"].get("labels") or {}).get(key) != value
        for key, value in (spec["selector"].get("matchLabels") or {}).items()
    ):
        labels = template["metadata"].get("labels") or {}
        errors.append(
            invalid_value(
                "spec.template.metadata.labels",
                labels,
                "`selector` does not match template `labels`",
            )
        )
    return errors + validate_pod_spec(template["spec"], "spec.template.spec")


def validate_workload_update(new: Json, old: Json) -> list[FieldError]:
    """Errors of a changed workload; its selector stays as it is."""
    errors = validate_workload(new)
    if new["spec"].get("selector") != old["spec"].get("selector"):
        selector = new["spec"].get("selector")
        errors.append(invalid_value("spec.selector", selector, "field is immutable"))
    return errors


def validate_job(job: Json) -> list[FieldError]:
    """Errors of a Job's pod template."""
    template = job["spec"]["template"]["spec"]
    errors = validate_pod_spec(template, "spec.template.spec")
    if template.get("restartPolicy") == "Always":
        message = 'Unsupported value: "Always": supported values: "OnFailure", "Never"'
        field = "spec.template.spec.restartPolicy"
        errors.append(FieldError(field, "FieldValueNotSupported", message))
    return errors
