"""Jobs: pods that run to their end, so many at a time and so many in all."""

from typing import Any, NamedTuple

from scheduler.cluster.controllers.ownership import (
    OwnedObjects,
    is_active,
    is_ready,
    pod_from_template,
)
from scheduler.cluster.controllers.reconciler import Key, Reconciler, key_of
from scheduler.cluster.deletion import DeleteOptions
from scheduler.cluster.object_meta import name_suffix
from scheduler.cluster.resources import JOBS, PODS
from scheduler.cluster.store import Stored

Json = dict[str, Any]

INDEX_ANNOTATION = "batch.kubernetes.io/job-completion-index"
_FINISHED = frozenset(("Complete", "Failed"))


class _Tally(NamedTuple):
    """A Job's pods: those still going, and how many ended which way."""

    active: list[Stored]
    succeeded: int
    failed: int


class JobController(Reconciler):
    """Creates the pods of Jobs and counts how they end."""

    def follow(self) -> None:
        """Follow Jobs and the pods they own."""
        self._pods = OwnedObjects(self.store, PODS, self._on_pod)
        self.subscribe(PODS, self._pods.see)
        self.subscribe(JOBS, lambda change: self.enqueue(key_of(change)))
        self.enqueue_all(JOBS)

    def _on_pod(self, namespace: str, owner: Json) -> None:
        if owner["kind"] == JOBS.kind:
            self.enqueue(Key(namespace, owner["name"]))

    def reconcile(self, key: Key) -> None:
        """Start or stop pods, then report; a finished Job stays as it is."""
        job = self.store.get(JOBS.stored_in, *key)
        if job is None or job.obj["metadata"].get("deletionTimestamp") or _is_finished(job):
            return
        tally = self._tally(job)
        ending = _ending(job.obj["spec"], tally)
        wanted = 0 if ending or job.obj["spec"]["suspend"] else _wanted(job.obj["spec"], tally)
        for pod in tally.active[wanted:]:
            options = DeleteOptions(uid=pod.obj["metadata"]["uid"])
            self.registry.delete(PODS, pod.namespace, pod.name, options)
        for index in self._next_indexes(job, wanted - len(tally.active)):
            self.registry.create(PODS, job.namespace, _pod(job, index))
        self._report(job, ending)

    def _tally(self, job: Stored) -> _Tally:
        pods = self._pods.of(job)
        status = job.obj["status"]
        ends = [pod.obj["status"].get("phase") for pod in pods]
        succeeded = max(status.get("succeeded", 0), ends.count("Succeeded"))
        failed = max(status.get("failed", 0), ends.count("Failed"))
        return _Tally([pod for pod in pods if is_active(pod)], succeeded, failed)

    def _next_indexes(self, job: Stored, missing: int) -> list[int | None]:
        """One entry per pod to create: its completion index, or ``None`` where there is none."""
        if missing <= 0:
            return []
        if job.obj["spec"]["completionMode"] != "Indexed":
            return [None] * missing
        taken = {
            pod.obj["metadata"].get("annotations", {}).get(INDEX_ANNOTATION)
            for pod in self._pods.of(job)
            if is_active(pod) or pod.obj["status"].get("phase") == "Succeeded"
        }
        free = (i for i in range(job.obj["spec"]["completions"]) if str(i) not in taken)
        return [index for index, _ in zip(free, range(missing), strict=False)]

    def _report(self, job: Stored, ending: Json | None) -> None:
        tally, now = self._tally(job), self.registry.clock.now()
        old = job.obj["status"]
        status: Json = {"startTime": old.get("startTime", now), "terminating": 0}
        counts = {
            "active": len(tally.active),
            "ready": sum(map(is_ready, tally.active)),
            "succeeded": tally.succeeded,
            "failed": tally.failed,
        }
        status |= {name: count for name, count in counts.items() if count or name == "ready"}
        status["uncountedTerminatedPods"] = {}
        if ending is not None:
            stamp = {"status": "True", "lastProbeTime": now, "lastTransitionTime": now}
            before = "SuccessCriteriaMet" if ending["type"] == "Complete" else "FailureTarget"
            status["conditions"] = [{**ending, "type": before, **stamp}, {**ending, **stamp}]
            if ending["type"] == "Complete":
                status["completionTime"] = now
        self.registry.change_status(JOBS, job.namespace, job.name, lambda _obj: status)


def _is_finished(job: Stored) -> bool:
    return any(
        condition["type"] in _FINISHED and condition["status"] == "True"
        for condition in job.obj["status"].get("conditions") or ()
    )


def _ending(spec: Json, tally: _Tally) -> Json | None:
    """The condition a Job ends with, once it has ended."""
    if tally.failed > spec["backoffLimit"]:
        return {
            "type": "Failed",
            "reason": "BackoffLimitExceeded",
            "message": "Job has reached the specified backoff limit",
        }
    completions = spec.get("completions")
    is_complete = (
        tally.succeeded > 0 and not tally.active
        if completions is None
        else tally.succeeded >= completions
    )
    if not is_complete:
        return None
    return {
        "type": "Complete",
        "reason": "CompletionsReached",
        "message": "Reached expected number of succeeded pods",
    }


def _wanted(spec: Json, tally: _Tally) -> int:
    """How many pods should be active."""
    parallelism, completions = int(spec["parallelism"]), spec.get("completions")
    if completions is not None:
        return min(parallelism, max(0, int(completions) - tally.succeeded))
    return len(tally.active) if tally.succeeded else parallelism


def _pod(job: Stored, index: int | None) -> Json:
    pod = pod_from_template(JOBS, job)
    if index is not None:
        metadata = pod["metadata"]
        metadata["name"] = f"{job.name}-{index}-{name_suffix()}"
        metadata.setdefault("annotations", {})[INDEX_ANNOTATION] = str(index)
        metadata.setdefault("labels", {})[INDEX_ANNOTATION] = str(index)
        pod["spec"].setdefault("hostname", f"{job.name}-{index}")
    return pod
