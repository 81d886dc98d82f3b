"""The counts of a Job, and the conditions with which it ends."""

from typing import NamedTuple

from simcluster.store.store import Stored
from simcluster.values import Json

_ENDS = frozenset(("Complete", "Failed"))


class Tally(NamedTuple):
    """A Job's pods: the active ones, and how many have succeeded and failed."""

    active: list[Stored]
    succeeded: int
    failed: int
    completed: set[int]
    num_ready: int
    num_terminating: int


def end_time(job: Stored) -> str | None:
    """When a Job ended; ``None`` while it runs."""
    for condition in job.obj["status"].get("conditions") or ():
        if condition["type"] in _ENDS and condition["status"] == "True":
            return str(condition["lastTransitionTime"])
    return None


def ending_of(spec: Json, tally: Tally, *, is_late: bool) -> Json | None:
    """The condition a Job ends with, once it has ended."""
    if is_late:
        why = "Job was active longer than specified deadline"
        return {"type": "Failed", "reason": "DeadlineExceeded", "message": why}
    if tally.failed > spec["backoffLimit"]:
        why = "Job has reached the specified backoff limit"
        return {"type": "Failed", "reason": "BackoffLimitExceeded", "message": why}
    completions = spec.get("completions")
    is_complete = (
        tally.succeeded > 0 and not tally.active
        if completions is None
        else tally.succeeded >= completions and not tally.active
    )
    if not is_complete:
        return None
    why = "Reached expected number of succeeded pods"
    return {"type": "Complete", "reason": "CompletionsReached", "message": why}


def wanted_pods(spec: Json, tally: Tally) -> int:
    """How many pods should be active."""
    parallelism, completions = int(spec["parallelism"]), spec.get("completions")
    if completions is not None:
        return min(parallelism, max(0, int(completions) - tally.succeeded))
    return min(len(tally.active), parallelism) if tally.succeeded else parallelism


def with_ending(conditions: list[Json], ending: Json, now: str) -> list[Json]:
    """Conditions with the one a Job ends with, and the one that announces it."""
    before = "SuccessCriteriaMet" if ending["type"] == "Complete" else "FailureTarget"
    reason, message = ending["reason"], ending["message"]
    return [
        *conditions,
        job_condition(before, reason, message, now),
        job_condition(ending["type"], reason, message, now),
    ]


def job_condition(kind: str, reason: str, message: str, now: str) -> Json:
    """A condition that is True."""
    return {
        "type": kind,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastProbeTime": now,
        "lastTransitionTime": now,
    }
