"""What a node stand-in is told to do: the annotation ``stowage/node-state``.

``kubectl annotate node NAME stowage/node-state=stopped`` stops a node while the cluster runs, and
``stowage/node-state-`` starts it again. Several words are separated by commas:

- ``stopped``: its kubelet says and does nothing any more. After the grace period of the node
  lifecycle controller its conditions are Unknown.
- ``not-ready``: its kubelet runs and reports that it is not ready.
- ``memory-pressure``, ``disk-pressure``, ``pid-pressure``, ``network-unavailable``: it reports so.
- ``fails-pods``: every pod it starts from now on fails.
"""

from typing import Any

Json = dict[str, Any]

NODE_STATE = "stowage/node-state"
STOPPED = "stopped"
NOT_READY = "not-ready"
FAILS_PODS = "fails-pods"
PRESSURES = {
    "memory-pressure": "MemoryPressure",
    "disk-pressure": "DiskPressure",
    "pid-pressure": "PIDPressure",
    "network-unavailable": "NetworkUnavailable",
}
WORDS = (STOPPED, NOT_READY, FAILS_PODS, *PRESSURES)


def node_states(node: Json) -> frozenset[str]:
    """The words of a node's annotation; unknown ones are kept."""
    text = (node["metadata"].get("annotations") or {}).get(NODE_STATE, "")
    return frozenset(word.strip() for word in text.split(",") if word.strip())


def is_silent(node: Json) -> bool:
    """Whether the node's kubelet stand-in is stopped."""
    return STOPPED in node_states(node)
