"""Plugins as an author writes them."""

from __future__ import annotations

from collections.abc import Iterator

from stowage.framework.authoring import (
    SUCCESS,
    ConfigError,
    CycleState,
    NodeInfo,
    PluginArgs,
    PodInfo,
    Status,
)


class PreferSsd:
    """Scores nodes with an SSD, one by one."""

    name = "PreferSsd"

    def score_node(self, pod: PodInfo, node: NodeInfo) -> int:
        return 100 if node.labels.get("disk") == "ssd" else 0


class Bounded:
    """Rejects nodes with as many pods as its arguments say."""

    name = "Bounded"

    class Args(PluginArgs):
        max_pods: int = 1

        def validate(self) -> Iterator[ConfigError]:
            if self.max_pods < 1:
                yield ConfigError("maxPods", self.max_pods, "at least 1")

    def __init__(self, args: Args) -> None:
        self.args = args

    def filter_node(self, pod: PodInfo, node: NodeInfo) -> str | None:
        return "full" if len(node.pods) >= self.args.max_pods else None


class Blocking:
    """Its pre_bind is not async, so it cannot be used."""

    name = "Blocking"

    def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        return SUCCESS
