"""The behaviour of a simulated node, set by annotations of its Node object.

They may be set from the start (``--node-file``) or changed while the cluster runs, with
``kubectl annotate node``, and they are saved with the cluster. ``stowage/node-state`` holds words
separated by commas:

- ``stopped``: the kubelet does nothing. After the grace period of the node lifecycle controller
  the node's conditions are Unknown. Without the word the kubelet runs again.
- ``not-ready``: the kubelet runs and reports that the node is not ready.
- ``memory-pressure``, ``disk-pressure``, ``pid-pressure``, ``network-unavailable``: the kubelet
  reports the condition.
- ``running``: the kubelet runs, also if the node was loaded from a dump as Unknown.

The others are numbers:

- ``stowage/stop-after-seconds``: the kubelet stops that long after its start.
- ``stowage/pod-start-seconds``: the time of a pod from admission to Running.
- ``stowage/pod-failure-rate``: 0 to 1, the share of pods that fail instead of running.
- ``stowage/job-run-seconds``: how long pods of Jobs run.

``stowage/csi-drivers`` lists CSI drivers, each with the number of volumes it can attach:
``disk.example.com=25,nfs.example.com``. The node's CSINode lists them. ``stowage/devices`` lists
devices, see ``device_slices``.
"""

import contextlib
from typing import NamedTuple

from simcluster.values import Json

NODE_STATE = "stowage/node-state"
STOP_AFTER = "stowage/stop-after-seconds"
POD_START = "stowage/pod-start-seconds"
POD_FAILURE_RATE = "stowage/pod-failure-rate"
JOB_RUN = "stowage/job-run-seconds"

STOPPED = "stopped"
NOT_READY = "not-ready"
RUNNING = "running"
PRESSURES = {
    "memory-pressure": "MemoryPressure",
    "disk-pressure": "DiskPressure",
    "pid-pressure": "PIDPressure",
    "network-unavailable": "NetworkUnavailable",
}
WORDS = frozenset((STOPPED, NOT_READY, RUNNING, *PRESSURES))


class NodeBehaviour(NamedTuple):
    """The annotations of a node, read; ``None`` means that the cluster's options apply."""

    words: frozenset[str] = frozenset()
    stop_after_s: float | None = None
    pod_start_s: float | None = None
    pod_failure_rate: float = 0.0
    job_run_s: float | None = None
    problems: tuple[str, ...] = ()


def node_behaviour(node: Json) -> NodeBehaviour:
    """Read a node's annotations; invalid ones are ignored and listed as problems."""
    annotations = node["metadata"].get("annotations") or {}
    problems: list[str] = []

    def number(name: str) -> float | None:
        text = annotations.get(name)
        if text is None:
            return None
        with contextlib.suppress(ValueError):
            value = float(text)
            if value >= 0:
                return value
        problems.append(f"{name}: {text!r} (expected a number, 0 or more)")
        return None

    said = {word.strip() for word in annotations.get(NODE_STATE, "").split(",")} - {""}
    if said - WORDS:
        unknown, known = ", ".join(sorted(said - WORDS)), ", ".join(sorted(WORDS))
        problems.append(f"{NODE_STATE}: {unknown!r} (expected some of {known})")
    return NodeBehaviour(
        frozenset(said & WORDS),
        number(STOP_AFTER),
        number(POD_START),
        number(POD_FAILURE_RATE) or 0.0,
        number(JOB_RUN),
        tuple(problems),
    )


def is_silent(node: Json) -> bool:
    """Whether the node's kubelet is stopped."""
    text = (node["metadata"].get("annotations") or {}).get(NODE_STATE, "")
    return STOPPED in text and STOPPED in node_behaviour(node).words
