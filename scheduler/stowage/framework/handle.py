"""The handle by which plugins act on waiting pods; ``framework.Handle``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import msgspec

from stowage.api.events import PodsActivated, WaitingPodAllowed, WaitingPodRejected
from stowage.state.pods.pod_info import PodInfo


class WaitingPod(msgspec.Struct, frozen=True):
    """A pod that waits at Permit.

    Attributes:
        pod: The pod.
        node_name: The node it is assumed on.
        plugins: The Permit plugins that have not allowed it yet.
    """

    pod: PodInfo
    node_name: str
    plugins: frozenset[str]


#: Passes an event to the engine, which handles it after the call in progress.
Post: TypeAlias = Callable[[WaitingPodAllowed | WaitingPodRejected | PodsActivated], None]


class Handle:
    """Lets plugins allow or reject pods that wait at Permit, and activate queued pods.

    A plugin gets it through a constructor parameter named ``handle``. Each call reaches the engine
    as an event and takes effect later. Call it in the thread of the event loop, which runs all
    methods of plugins, coroutines included.
    """

    def __init__(self) -> None:
        self._post: Post = _refuse
        self._waiting_pods: Callable[[], Sequence[WaitingPod]] = tuple
        self._report_exception: Callable[[str, str, Exception], None] | None = None

    def connect(self, post: Post, waiting_pods: Callable[[], Sequence[WaitingPod]]) -> None:
        """Connect the handle to a running engine; the composition root calls this.

        Args:
            post: Passes events to the engine.
            waiting_pods: Returns the engine's waiting pods.
        """
        self._post = post
        self._waiting_pods = waiting_pods

    def report_exceptions_to(self, report: Callable[[str, str, Exception], None]) -> None:
        """Pass the exceptions of plugins on; the composition root calls this.

        Args:
            report: Takes the plugin, the extension point and the exception.
        """
        self._report_exception = report

    def report_exception(self, plugin: str, point: str, error: Exception) -> None:
        """Pass on that a plugin has raised; the plugin itself need not call this."""
        if self._report_exception is not None:
            self._report_exception(plugin, point, error)

    def waiting_pods(self) -> Sequence[WaitingPod]:
        """The pods that wait at Permit now; ``IterateOverWaitingPods``.

        The pod whose Permit is running is not among them.
        """
        return self._waiting_pods()

    def waiting_pod(self, uid: str) -> WaitingPod | None:
        """The pod, if it waits at Permit now; ``GetWaitingPod``."""
        return next((each for each in self._waiting_pods() if each.pod.uid == uid), None)

    def allow(self, uid: str, plugin: str) -> None:
        """Allow the pod on behalf of `plugin`; ignored if the pod does not wait for the plugin.

        Raises:
            RuntimeError: The scheduler is not running yet.
        """
        self._post(WaitingPodAllowed(uid, plugin))

    def reject(self, uid: str, plugin: str, message: str) -> None:
        """Reject the pod on behalf of `plugin`, with `message` as the reason.

        Raises:
            RuntimeError: The scheduler is not running yet.
        """
        self._post(WaitingPodRejected(uid, plugin, message))

    def activate(self, uids: Iterable[str]) -> None:
        """Move pods to the active queue now unless they are gated; ``Activate``.

        A pod that is not in the queue is ignored.

        Raises:
            RuntimeError: The scheduler is not running yet.
        """
        self._post(PodsActivated(tuple(uids)))


def _refuse(event: WaitingPodAllowed | WaitingPodRejected | PodsActivated) -> None:
    raise RuntimeError(f"the scheduler is not running yet and cannot handle {event}")
