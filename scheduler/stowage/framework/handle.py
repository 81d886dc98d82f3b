"""What a plugin may ask of the running scheduler; ``framework.Handle``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import msgspec

from stowage.api.events import PodsActivated, WaitingPodAllowed, WaitingPodRejected
from stowage.state.pods.pod_info import PodInfo


class WaitingPod(msgspec.Struct, frozen=True):
    """A pod that has a node and waits because Permit plugins said so.

    Attributes:
        pod: The pod.
        node_name: The node it is assumed on.
        plugins: Who has not allowed it yet.
    """

    pod: PodInfo
    node_name: str
    plugins: frozenset[str]


#: Takes word for the engine; it is handled after the call in progress.
Post: TypeAlias = Callable[[WaitingPodAllowed | WaitingPodRejected | PodsActivated], None]


class Handle:
    """Lets plugins release pods that wait at Permit, and have pods tried that wait in the queue.

    A plugin gets it by naming a parameter ``handle`` in its constructor. Nothing happens at once:
    what is asked here reaches the engine as an event. Call it from the thread of the event loop,
    that is from any method of a plugin, coroutines included.
    """

    def __init__(self) -> None:
        self._post: Post = _refuse
        self._waiting_pods: Callable[[], Sequence[WaitingPod]] = tuple

    def connect(self, post: Post, waiting_pods: Callable[[], Sequence[WaitingPod]]) -> None:
        """Join it to a running engine; for whoever puts the scheduler together.

        Args:
            post: Where events for the engine go.
            waiting_pods: Asks the engine.
        """
        self._post = post
        self._waiting_pods = waiting_pods

    def waiting_pods(self) -> Sequence[WaitingPod]:
        """The pods that wait at Permit now; ``IterateOverWaitingPods``.

        The pod that is being permitted right now is not among them.
        """
        return self._waiting_pods()

    def waiting_pod(self, uid: str) -> WaitingPod | None:
        """The pod if it waits at Permit now; ``GetWaitingPod``."""
        return next((each for each in self._waiting_pods() if each.pod.uid == uid), None)

    def allow(self, uid: str, plugin: str) -> None:
        """`plugin` lets this pod go on; a pod that does not wait for it is no error.

        Raises:
            RuntimeError: The scheduler does not run yet.
        """
        self._post(WaitingPodAllowed(uid, plugin))

    def reject(self, uid: str, plugin: str, message: str) -> None:
        """`plugin` refuses this pod, which is unscheduled with `message` as the reason.

        Raises:
            RuntimeError: The scheduler does not run yet.
        """
        self._post(WaitingPodRejected(uid, plugin, message))

    def activate(self, uids: Iterable[str]) -> None:
        """Have pods tried now, whatever they wait for, their gates excepted; ``Activate``.

        A pod that does not wait in the queue is no error.

        Raises:
            RuntimeError: The scheduler does not run yet.
        """
        self._post(PodsActivated(tuple(uids)))


def _refuse(event: WaitingPodAllowed | WaitingPodRejected | PodsActivated) -> None:
    raise RuntimeError(f"the scheduler does not run yet, nobody takes {event}")
