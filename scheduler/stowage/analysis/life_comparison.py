"""What would have been decided otherwise: two or three lives of one recording side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from stowage.analysis.pod_stories import PendingTimes, PodStory, pending_times
from stowage.analysis.utilisation import Share, UtilisationSamples

RECORDED = "recorded"
"""The name of what really happened."""


class Life(msgspec.Struct, frozen=True):
    """One life: what really happened, or what a configuration would have decided.

    Attributes:
        name: Its name in the answer.
        stories: UID -> story of the pod.
        preempted: Number of preempted pods.
        samples: The utilisation.
        ended: The time of its end.
    """

    name: str
    stories: Mapping[str, PodStory]
    preempted: int
    samples: UtilisationSamples
    ended: float


class _Answer(msgspec.Struct, frozen=True, rename="camel"):
    """Base of the parts of an answer."""


class LifeSummary(_Answer, frozen=True):
    """Counts of one life.

    Attributes:
        name: Its name.
        placed: Number of pods that were pending and got a node.
        unplaced: Number of pods that were pending and got none.
        pending: How long pods were pending.
        preempted: Number of preempted pods.
        utilisation: Resource -> requested share, averaged over time.
    """

    name: str
    placed: int
    unplaced: int
    pending: PendingTimes
    preempted: int
    utilisation: dict[str, Share]


class DifferingPod(_Answer, frozen=True):
    """A pod with another node.

    Attributes:
        pod: The pod.
        nodes: Life -> the last node of the pod; empty if it has none.
        tied: Whether other nodes were as good in the last life.
    """

    pod: str
    nodes: dict[str, str]
    tied: bool


class LifeComparison(_Answer, frozen=True):
    """Lives of one recording.

    Attributes:
        started: The time of the first call.
        ended: The time of the last call.
        lives: What really happened first; the last two are compared.
        pods: Number of pods.
        differing: The pods whose last nodes differ between the last two lives.
        notes: What the answer cannot know.
    """

    started: str
    ended: str
    lives: tuple[LifeSummary, ...]
    pods: int
    differing: tuple[DifferingPod, ...]
    notes: tuple[str, ...] = ()


def compare_lives(
    lives: Sequence[Life], started: str, ended: str, notes: Sequence[str]
) -> LifeComparison:
    """Compare the last two lives; `lives` begins with what really happened."""
    before, after = lives[-2:]
    differing = [
        DifferingPod(
            story.key,
            {each.name: each.stories[uid].node if uid in each.stories else "" for each in lives},
            story.tied,
        )
        for uid, story in after.stories.items()
        if uid in before.stories and story.node != before.stories[uid].node
    ]
    return LifeComparison(
        started,
        ended,
        tuple(_summary(each) for each in lives),
        len(after.stories),
        tuple(sorted(differing, key=lambda each: each.pod)),
        tuple(notes),
    )


def _summary(life: Life) -> LifeSummary:
    pending = [each for each in life.stories.values() if each.was_pending]
    placed = sum(each.placed is not None for each in pending)
    return LifeSummary(
        life.name,
        placed,
        len(pending) - placed,
        pending_times(pending, life.ended),
        life.preempted,
        life.samples.averages(),
    )
