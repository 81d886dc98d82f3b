"""Equal pods in a row: the next one takes over what PreFilter and PreScore left for the one before.

The members of a pod group are placed one after the other while nothing else changes. For a member
of the class of the one before, Filter and Score then only update the row of that one's node. What
PreFilter and PreScore left stays right if each plugin either skips, and promises to skip again
(`PluginTraits.skips_per_class`), or has answers that are kept, so that it reads only the class of
the pod.
"""

from __future__ import annotations

from collections.abc import Iterable

from stowage.framework.cycle_state import PreparedCycle
from stowage.framework.extension_points import Plugin
from stowage.framework.plugin_traits import Reads
from stowage.state.pods.pod_info import PodInfo


def is_plain(pod: PodInfo) -> bool:
    """Whether a pod has nothing of its own beside its class that plugins look at."""
    has_own = pod.volumes or pod.spec.resource_claims or pod.nominated_node_name or pod.node_name
    return not has_own


class ClassRepeats:
    """Says which pods may take over what was left for the pod before.

    Args:
        pre_filter: The PreFilter plugins.
        pre_score: The PreScore plugins.
    """

    def __init__(self, pre_filter: Iterable[Plugin], pre_score: Iterable[Plugin]) -> None:
        self._pre_filter = tuple(pre_filter)
        self._pre_score = tuple(pre_score)
        self._filtered: dict[frozenset[str], bool] = {}
        self._scored: dict[tuple[frozenset[str], frozenset[str]], bool] = {}

    def filtered(self, prepared: PreparedCycle) -> bool:
        """Whether PreFilter need not run again."""
        skipped = prepared.skip_filter
        known = self._filtered.get(skipped)
        if known is None:
            known = self._filtered[skipped] = all(
                each.traits.skips_per_class
                if each.name in skipped
                else each.traits.filter_reads is not Reads.CLUSTER
                for each in self._pre_filter
            )
        return known

    def scored(self, prepared: PreparedCycle) -> bool:
        """Whether PreScore need not run again."""
        skipped, uncached = prepared.skip_score, prepared.uncached_scores
        if skipped is None:
            return False
        known = self._scored.get((skipped, uncached))
        if known is None:
            known = self._scored[skipped, uncached] = all(
                each.traits.skips_per_class
                if each.name in skipped
                else each.traits.score_reads is not Reads.CLUSTER and each.name not in uncached
                for each in self._pre_score
            )
        return known
