"""A plugin around binding: lets pods wait for each other, and does I/O before they are bound."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

from stowage.framework.authoring import (
    SKIP,
    SUCCESS,
    WAIT,
    ConfigError,
    CycleState,
    Handle,
    PluginArgs,
    PodInfo,
    Status,
)


class Gang:
    """Binds no pod of a gang before `size` of them have a node; writes them into a ledger."""

    name = "Gang"

    class Args(PluginArgs):
        """Whose pods, how many and for how long; `ledger` is a file, or empty for none."""

        label: str = "example.com/gang"
        size: int = 2
        timeout_seconds: float = 60.0
        ledger: str = ""

        def validate(self) -> Iterator[ConfigError]:
            """Yield what is wrong with the values."""
            if self.size < 1:
                yield ConfigError("size", self.size, "at least 1")
            if self.timeout_seconds <= 0:
                yield ConfigError("timeoutSeconds", self.timeout_seconds, "more than 0")

    def __init__(self, args: Args, handle: Handle) -> None:
        self.args = args
        self.handle = handle

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        """Wait for the others; the last one to come releases them."""
        gang = self._gang_of(pod)
        if gang is None:
            return SUCCESS, 0.0
        others = [
            waiting.pod
            for waiting in self.handle.waiting_pods()
            if self._gang_of(waiting.pod) == gang
        ]
        if len(others) + 1 < self.args.size:
            return WAIT, self.args.timeout_seconds
        for other in others:
            self.handle.allow(other.uid, self.name)
        return SUCCESS, 0.0

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """There is work only for pods of gangs, and only with a ledger."""
        return SUCCESS if self.args.ledger and self._gang_of(pod) is not None else SKIP

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Write the pod down; the disk must not hold up the event loop."""
        await asyncio.to_thread(self._write, f"{pod.key} on {node_name}\n")
        return SUCCESS

    def _write(self, line: str) -> None:
        with Path(self.args.ledger).open("a", encoding="utf-8") as ledger:
            ledger.write(line)

    def _gang_of(self, pod: PodInfo) -> tuple[str, str] | None:
        gang = pod.labels.get(self.args.label)
        return None if gang is None else (pod.namespace, gang)
