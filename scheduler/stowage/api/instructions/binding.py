"""Instructions that bind a pod, or look after its binding."""

from __future__ import annotations

import msgspec

from stowage.api.instructions.references import PodReference


class RunPreBind(msgspec.Struct, frozen=True, tag=True):
    """Run PreBind plugins of a profile, then report ``PreBindFinished`` with the `number`."""

    pod: PodReference
    node_name: str
    scheduler_name: str
    plugins: tuple[str, ...]
    number: int = 0


class StopPreBind(msgspec.Struct, frozen=True, tag=True):
    """Stop the PreBind plugins of a deleted pod; nothing is reported."""

    pod: PodReference


class BindPod(msgspec.Struct, frozen=True, tag=True):
    """POST a Binding, then report ``BindSucceeded`` or ``BindFailed``.

    The API server copies the `annotations` of the Binding to the pod.
    """

    pod: PodReference
    node_name: str
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class BindByExtender(msgspec.Struct, frozen=True, tag=True):
    """Let an extender bind the pod, then report ``BindSucceeded`` or ``BindFailed``.

    `extender` is its index in the configuration. `fallback` is executed if an ignorable extender
    fails; None for other extenders.
    """

    pod: PodReference
    node_name: str
    extender: int
    fallback: BindPod | None = None


class ReadPod(msgspec.Struct, frozen=True, tag=True):
    """Read a pod whose binding the watch has not confirmed.

    Report ``AssignedPodGone`` if the pod is deleted, finished, replaced by another or without a
    node. Otherwise report nothing, since only the watch orders this state and a later deletion.
    """

    pod: PodReference
