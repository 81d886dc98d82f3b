"""Defaults of workloads: what makes pods from a template."""

from typing import Any

from simcluster.kinds.pod_defaults import set_pod_spec_defaults
from simcluster.store.object_meta import new_uid
from simcluster.store.store import Store

Json = dict[str, Any]


def set_template_defaults(spec: Json) -> None:
    """Fill the pod template of what makes pods."""
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
    set_template_defaults(spec)
    deployment.setdefault("status", {})


def set_replicated_defaults(workload: Json) -> None:
    """A ReplicaSet: one replica."""
    spec = workload.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    set_template_defaults(spec)
    workload.setdefault("status", {"replicas": 0})


def set_controller_defaults(controller: Json) -> None:
    """A ReplicationController: it selects by its template's labels."""
    set_replicated_defaults(controller)
    spec = controller["spec"]
    labels = spec["template"]["metadata"].get("labels")
    if labels:
        spec.setdefault("selector", dict(labels))
        controller["metadata"].setdefault("labels", dict(labels))


def set_stateful_set_defaults(workload: Json) -> None:
    """A StatefulSet: in order, rolling."""
    workload.setdefault("status", {"replicas": 0, "availableReplicas": 0})
    set_replicated_defaults(workload)
    spec = workload["spec"]
    spec.setdefault("podManagementPolicy", "OrderedReady")
    spec.setdefault("revisionHistoryLimit", 10)
    update = spec.setdefault("updateStrategy", {})
    if update.setdefault("type", "RollingUpdate") == "RollingUpdate":
        update.setdefault("rollingUpdate", {}).setdefault("partition", 0)
    retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    retention.setdefault("whenDeleted", "Retain")
    retention.setdefault("whenScaled", "Retain")
    for claim in spec.get("volumeClaimTemplates") or ():
        claim.setdefault("apiVersion", "v1")
        claim.setdefault("kind", "PersistentVolumeClaim")
        claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
        claim.setdefault("status", {}).setdefault("phase", "Pending")


def set_daemon_set_defaults(workload: Json) -> None:
    """A DaemonSet: rolling one by one."""
    spec = workload.setdefault("spec", {})
    set_template_defaults(spec)
    spec.setdefault("revisionHistoryLimit", 10)
    update = spec.setdefault("updateStrategy", {})
    if update.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = update.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)
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
    replacement = "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed"
    spec.setdefault("podReplacementPolicy", replacement)
    set_template_defaults(spec)
    job.setdefault("status", {})


def admit_job(_store: Store, job: Json) -> None:
    """Give the job's pods labels of their own and select by them."""
    if job["spec"].get("manualSelector"):
        return
    uid, name = job["metadata"].get("uid") or new_uid(), job["metadata"].get("name", "")
    labels = job["spec"]["template"]["metadata"].setdefault("labels", {})
    for prefix in ("", "batch.kubernetes.io/"):
        labels[f"{prefix}controller-uid"] = uid
        labels[f"{prefix}job-name"] = name
    job["spec"]["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    if not job["metadata"].get("labels"):
        job["metadata"]["labels"] = dict(labels)
