"""Arguments of InterPodAffinity."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from stowage.api.config.errors import ConfigError

MAX_HARD_POD_AFFINITY_WEIGHT = 100


class InterPodAffinityArgs(msgspec.Struct, frozen=True, rename="camel"):
    """``InterPodAffinityArgs`` of kubescheduler.config.k8s.io/v1.

    Attributes:
        hard_pod_affinity_weight: Score, 0..100, for each placed pod whose required affinity
            matches the incoming pod.
        ignore_preferred_terms_of_existing_pods: Whether the plugin skips scoring for a pod without
            preferred terms.
    """

    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False

    def validate(self) -> Iterator[ConfigError]:
        """Yield an error for each value out of bounds."""
        if not 0 <= self.hard_pod_affinity_weight <= MAX_HARD_POD_AFFINITY_WEIGHT:
            yield ConfigError(
                "hardPodAffinityWeight",
                self.hard_pod_affinity_weight,
                f"a whole number from 0 to {MAX_HARD_POD_AFFINITY_WEIGHT}",
            )
