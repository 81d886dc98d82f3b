"""The smallest kind of plugin: rates one node at a time."""

from collections.abc import Iterator

from stowage.framework.authoring import (
    ConfigError,
    NodeInfo,
    PluginArgs,
    PluginTraits,
    PodInfo,
    Reads,
)


class PreferLabel:
    """Prefers nodes with a label."""

    name = "PreferLabel"
    # The answer depends on the node object alone, so it is kept until the node changes.
    traits = PluginTraits(score_reads=Reads.NODE)

    class Args(PluginArgs):
        """Which label and which value; the file says ``key`` and ``value``."""

        key: str = "disk"
        value: str = "ssd"

        def validate(self) -> Iterator[ConfigError]:
            """Yield what is wrong with the values."""
            if not self.key:
                yield ConfigError("key", self.key, "the key of a label")

    def __init__(self, args: Args) -> None:
        self.args = args

    def score_node(self, pod: PodInfo, node: NodeInfo) -> int:
        """100 with the label, 0 without."""
        return 100 if node.labels.get(self.args.key) == self.args.value else 0
