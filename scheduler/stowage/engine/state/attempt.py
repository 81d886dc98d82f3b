"""One scheduling attempt."""

from __future__ import annotations

import msgspec

from stowage.engine.state.consultations import Consultation
from stowage.queue.queued_pod import QueuedPod
from stowage.state.pods.pod_info import PodInfo


class Attempt(msgspec.Struct, frozen=True):
    """A pod that is being attempted.

    Attributes:
        queued: The pod as the queue returned it.
        info: The pod as last seen; the watch may have shown an update since.
        started: The engine's timer at the beginning of the attempt.
        consultation: The extenders' part in this attempt so far; None if they were not asked.
    """

    queued: QueuedPod
    info: PodInfo
    started: float
    consultation: Consultation | None = None
