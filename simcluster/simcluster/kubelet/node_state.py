"""How a node stand-in behaves, said in annotations of its Node object.

They may be set from the start (``--node-file``) or changed while the cluster runs, with
``kubectl annotate node``, and they are saved with the cluster. ``stowage/node-state`` holds words
separated by commas:

- ``stopped``: the kubelet says and does nothing any more. After the grace period of the node
  lifecycle controller the node's conditions are Unknown. Without the word it is back.
- ``not-ready``: the kubelet runs and reports that it is not ready.
- ``memory-pressure``, ``disk-pressure``, ``pid-pressure``, ``network-unavailable``: it reports so.
- ``running``: the kubelet runs, whatever the conditions said that the node was loaded with.

The others are numbers:

- ``stowage/stop-after-seconds``: the kubelet stops that long after it has started.
- ``stowage/pod-start-seconds``: how long pods take from admission to Running.
- ``stowage/pod-failure-rate``: 0 to 1, the share of pods that fail instead of running.
- ``stowage/job-run-seconds``: how long pods of Jobs run.

``stowage/csi-drivers`` lists CSI drivers, each with the number of volumes it can attach:
``disk.example.com=25,nfs.example.com``. The node's CSINode says so.
"""

import contextlib
from typing import Any, NamedTuple

Json = dict[str, Any]

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
    """What a node's annotations say; ``None`` leaves it to the cluster's options."""

    words: frozenset[str] = frozenset()
    stop_after_s: float | None = None
    pod_start_s: float | None = None
    pod_failure_rate: float = 0.0
    job_run_s: float | None = None
    problems: tuple[str, ...] = ()


def node_behaviour(node: Json) -> NodeBehaviour:
    """Read a node's annotations; what cannot be read is left out and told."""
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
    """Whether the node's kubelet stand-in is stopped."""
    text = (node["metadata"].get("annotations") or {}).get(NODE_STATE, "")
    return STOPPED in text and STOPPED in node_behaviour(node).words
