"""Jobs: pods that run to completion, with limits for parallelism and completions."""

import itertools

from simcluster.clock import parse_timestamp
from simcluster.controllers.ownership import (
    JOB_TRACKING,
    controller_reference,
    is_finished,
    is_terminating,
    pod_from_template,
)
from simcluster.controllers.reconciler import Key, Reconciler, key_of
from simcluster.controllers.workloads.completion_indexes import (
    INDEX_ANNOTATION,
    format_indexes,
    index_of,
    parse_indexes,
)
from simcluster.controllers.workloads.job_status import (
    Tally,
    end_time,
    ending_of,
    job_condition,
    wanted_pods,
    with_ending,
)
from simcluster.kinds.resources import JOBS, PODS
from simcluster.store.object_meta import name_suffix
from simcluster.store.store import Change, Stored
from simcluster.values import Json

POD_BACKOFF_S = 10.0
MAX_POD_BACKOFF_S = 600.0


class JobController(Reconciler):
    """Creates the pods of Jobs and counts the succeeded and failed ones.

    A pod carries the tracking finalizer until its end has been counted in the Job's status, so that
    each is counted exactly once, also if a client deletes it.
    """

    def follow(self) -> None:
        """Follow Jobs and the pods they own."""
        self._failed_at: dict[Key, tuple[int, float]] = {}
        self.shared.pods.on_change(JOBS.kind, self._on_pod)
        self.subscribe(PODS, self._on_any_pod)
        self.subscribe(JOBS, self._on_job)
        self.enqueue_all(JOBS)

    def _on_job(self, change: Change) -> None:
        if change.type == "DELETED":
            self._failed_at.pop(key_of(change), None)
            self.forget_timer(key_of(change))
        self.enqueue(key_of(change))

    def _on_pod(self, change: Change, owner: Json) -> None:
        self.enqueue(Key(change.current.namespace, owner["name"]))

    def _on_any_pod(self, change: Change) -> None:
        """Release a tracked pod whose Job is gone; no other controller would."""
        metadata = change.current.obj["metadata"]
        is_tracked = JOB_TRACKING in (metadata.get("finalizers") or ())
        if is_tracked and change.type != "DELETED" and not self._job_of(change.current):
            self.enqueue(Key(f"{change.current.namespace}/pod", change.current.name))

    def _job_of(self, pod: Stored) -> Stored | None:
        reference = controller_reference(pod.obj)
        if reference is None or reference["kind"] != JOBS.kind:
            return None
        job = self.find(JOBS, pod.namespace, reference["name"])
        return job if job is not None and job.obj["metadata"]["uid"] == reference["uid"] else None

    def reconcile(self, key: Key) -> None:
        """Count ended pods, start or stop others, and write the status of an unfinished Job."""
        namespace, is_pod, _ = key.namespace.partition("/pod")
        if is_pod:
            self._release(self.find(PODS, namespace, key.name))
            return
        job = self.find(JOBS, *key)
        if job is None:
            return
        tally = self._counted(job)
        if job.obj["metadata"].get("deletionTimestamp"):
            self._untrack(job)
            return
        if end_time(job):
            self._untrack(job)
            self._expire(key, job)
            return
        ending = self._ending(job, tally)
        spec = job.obj["spec"]
        wanted = 0 if ending or spec.get("suspend") else wanted_pods(spec, tally)
        self._stop(tally.active[wanted:])
        if wanted > len(tally.active):
            self._start(key, job, tally, wanted - len(tally.active))
        self._report(key, tally, ending)
        self._untrack(job)

    def _counted(self, job: Stored) -> Tally:
        """The Job's pods, with those that ended since the last report counted in."""
        group, status = self.shared.pods.of(job), job.obj["status"]
        uncounted = list(group.tracked.values())
        succeeded = [pod for pod in uncounted if pod.obj["status"].get("phase") == "Succeeded"]
        failed = [pod for pod in uncounted if _counts_as_failed(pod)]
        done = parse_indexes(status.get("completedIndexes", ""))
        if job.obj["spec"].get("completionMode") == "Indexed":
            done |= {index for index in map(index_of, succeeded) if index is not None}
            num_succeeded = len(done)
        else:
            num_succeeded = status.get("succeeded", 0) + len(succeeded)
        return Tally(
            list(group.active.values()),
            num_succeeded,
            status.get("failed", 0) + len(failed),
            done,
            group.num_ready,
            group.num_terminating,
        )

    def _untrack(self, job: Stored) -> None:
        """Remove the finalizer from pods whose end the status now counts."""
        for pod in list(self.shared.pods.of(job).tracked.values()):
            if is_finished(pod) or is_terminating(pod):
                self._release(pod)

    def _release(self, pod: Stored | None) -> None:
        if pod is None or JOB_TRACKING not in (pod.obj["metadata"].get("finalizers") or ()):
            return
        kept = [found for found in pod.obj["metadata"]["finalizers"] if found != JOB_TRACKING]
        self.write_list(PODS, pod, "finalizers", kept)

    def _ending(self, job: Stored, tally: Tally) -> Json | None:
        """The condition with which the Job ends now, if it does; plans its deadline otherwise."""
        deadline_s = job.obj["spec"].get("activeDeadlineSeconds")
        started = job.obj["status"].get("startTime")
        left_s = None
        if deadline_s is not None and started and not job.obj["spec"]["suspend"]:
            left_s = parse_timestamp(started) + deadline_s - self.registry.clock.time_s()
            if left_s > 0:
                self.enqueue_after(Key(job.namespace, job.name), left_s)
        return ending_of(job.obj["spec"], tally, is_late=left_s is not None and left_s <= 0)

    def _stop(self, pods: list[Stored]) -> None:
        """Delete surplus pods; without the finalizer they do not count as failed."""
        for pod in pods:
            self._release(pod)
            self.delete(PODS, pod)

    def _start(self, key: Key, job: Stored, tally: Tally, missing: int) -> None:
        """Create pods; after failures only when the backoff is over."""
        wait_s = self._backoff_left_s(key, tally)
        if wait_s > 0:
            self.enqueue_after(key, wait_s)
            return
        if job.obj["spec"].get("podReplacementPolicy") == "Failed":
            missing -= tally.num_terminating
        for index in self._next_indexes(job, tally, missing):
            self.registry.create(PODS, job.namespace, _pod(job, index))

    def _backoff_left_s(self, key: Key, tally: Tally) -> float:
        now = self.registry.clock.time_s()
        count, since = self._failed_at.get(key, (0, now))
        if tally.failed > count:
            count, since = tally.failed, now
            self._failed_at[key] = (count, since)
        if not count:
            return 0.0
        backoff_s: float = min(POD_BACKOFF_S * 2.0 ** (count - 1), MAX_POD_BACKOFF_S)
        return since + backoff_s - now

    def _next_indexes(self, job: Stored, tally: Tally, missing: int) -> list[int | None]:
        """One entry per pod to create: its completion index, or ``None`` where there is none."""
        if missing <= 0:
            return []
        if job.obj["spec"].get("completionMode") != "Indexed":
            return [None] * missing
        taken = tally.completed | {index_of(pod) for pod in tally.active}
        free = (i for i in range(job.obj["spec"]["completions"]) if i not in taken)
        return list(itertools.islice(free, missing))

    def _report(self, key: Key, tally: Tally, ending: Json | None) -> None:
        job = self.find(JOBS, *key)
        if job is None:
            return
        group, now = self.shared.pods.of(job), self.registry.clock.now()
        old, spec = job.obj["status"], job.obj["spec"]
        status: Json = {"ready": group.num_ready, "terminating": group.num_terminating}
        if not spec.get("suspend"):
            status["startTime"] = old.get("startTime", now)
        counts = {"active": len(group.active), "succeeded": tally.succeeded, "failed": tally.failed}
        status |= {name: count for name, count in counts.items() if count}
        status["uncountedTerminatedPods"] = {}
        if spec.get("completionMode") == "Indexed" and tally.completed:
            status["completedIndexes"] = format_indexes(tally.completed)
        conditions = old.get("conditions") or []
        conditions = _with_suspension(conditions, spec, now)
        if ending is not None:
            conditions = with_ending(conditions, ending, now)
            if ending["type"] == "Complete":
                status["completionTime"] = now
        if conditions:
            status["conditions"] = conditions
        self.registry.change_status(JOBS, *key, lambda _obj: status)

    def _expire(self, key: Key, job: Stored) -> None:
        """Delete a finished Job when its ``ttlSecondsAfterFinished`` are over."""
        ttl_s = job.obj["spec"].get("ttlSecondsAfterFinished")
        ended = end_time(job)
        if ttl_s is None or ended is None:
            return
        left_s = parse_timestamp(ended) + ttl_s - self.registry.clock.time_s()
        if left_s > 0:
            self.enqueue_after(key, left_s)
            return
        self.delete(JOBS, job, "Foreground")


def _counts_as_failed(pod: Stored) -> bool:
    """Failed, or deleted before it ended."""
    phase = pod.obj["status"].get("phase")
    return phase == "Failed" or (phase != "Succeeded" and is_terminating(pod))


def _with_suspension(conditions: list[Json], spec: Json, now: str) -> list[Json]:
    """Conditions with Suspended, where the Job is or was."""
    kept = [found for found in conditions if found["type"] != "Suspended"]
    before = next((found for found in conditions if found["type"] == "Suspended"), None)
    if spec.get("suspend"):
        fresh = job_condition("Suspended", "JobSuspended", "Job suspended", now)
    elif before is not None:
        fresh = job_condition("Suspended", "JobResumed", "Job resumed", now) | {"status": "False"}
    else:
        return conditions
    if before is not None and before["status"] == fresh["status"]:
        fresh = before
    return [*kept, fresh]


def _pod(job: Stored, index: int | None) -> Json:
    pod = pod_from_template(JOBS, job)
    metadata = pod["metadata"]
    metadata["finalizers"] = [JOB_TRACKING]
    if index is not None:
        metadata["name"] = f"{job.name}-{index}-{name_suffix()}"
        metadata.setdefault("annotations", {})[INDEX_ANNOTATION] = str(index)
        metadata.setdefault("labels", {})[INDEX_ANNOTATION] = str(index)
        pod["spec"].setdefault("hostname", f"{job.name}-{index}")
    return pod
