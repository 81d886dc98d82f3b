"""Pods that the API server has bound and that the watch has not shown as bound yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from stowage.api.instructions import PodReference

#: The engine reads a bound pod back if the watch has not shown it after this many seconds.
CONFIRM_WITHIN_S = 30.0


class UnconfirmedBindings:
    """Bound pods with the time of the answer or of the last read, earliest first.

    A pod that is bound and deleted within one gap of the watch would stay assumed for ever. So
    pods that stay unconfirmed are read back, again and again.
    """

    def __init__(self) -> None:
        self._since: dict[str, tuple[PodReference, float]] = {}

    def __iter__(self) -> Iterator[PodReference]:
        return (reference for reference, _ in self._since.values())

    def add(self, pod: PodReference, now: float) -> None:
        """The API server has bound a pod."""
        self._since[pod.uid] = (pod, now)

    def confirm(self, uid: str) -> None:
        """The watch has shown the pod bound, or gone."""
        self._since.pop(uid, None)

    def take_overdue(self, now: float, is_assumed: Callable[[str], bool]) -> Iterator[PodReference]:
        """The pods to read back now; their time starts again. Pods not assumed are dropped."""
        while self._since:
            uid, (pod, since) = next(iter(self._since.items()))
            if not is_assumed(uid):
                del self._since[uid]
            elif since + CONFIRM_WITHIN_S <= now:
                del self._since[uid]
                self._since[uid] = (pod, now)
                yield pod
            else:
                return

    def next_deadline(self) -> float | None:
        """When the first pod is due to be read back; None if all are confirmed."""
        for _, since in self._since.values():
            return since + CONFIRM_WITHIN_S
        return None
