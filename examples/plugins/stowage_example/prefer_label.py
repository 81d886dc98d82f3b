"""The smallest kind of plugin: a score of one node at a time."""

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
    # The score depends on the node object only, so the framework keeps it until the node changes.
    traits = PluginTraits(score_reads=Reads.NODE)

    class Args(PluginArgs):
        """The label to prefer; in the configuration ``key`` and ``value``."""

        key: str = "disk"
        value: str = "ssd"

        def validate(self) -> Iterator[ConfigError]:
            """Yield an error for each invalid value."""
            if not self.key:
                yield ConfigError("key", self.key, "the key of a label")

    def __init__(self, args: Args) -> None:
        self.args = args

    def score_node(self, pod: PodInfo, node: NodeInfo) -> int:
        """100 with the label, 0 without."""
        return 100 if node.labels.get(self.args.key) == self.args.value else 0
