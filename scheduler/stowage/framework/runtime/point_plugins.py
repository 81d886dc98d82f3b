"""The plugins of a profile at each extension point, with the types of the points."""

from __future__ import annotations

from typing import NamedTuple, cast

from stowage.framework.extension_points import (
    BindPlugin,
    FilterPlugin,
    PermitPlugin,
    PodGroupPostFilterPlugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreFilterPlugin,
    PreparingPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
    StagedPreBindPlugin,
)
from stowage.framework.implements import implements
from stowage.framework.profile.points import ExtensionPoint
from stowage.framework.profile.profile import Profile


class PointPlugins(NamedTuple):
    """The plugins of each extension point, in the order in which they run."""

    queue_sort: QueueSortPlugin
    preparing: tuple[PreparingPlugin, ...]
    pre_filter: tuple[PreFilterPlugin, ...]
    filter: tuple[FilterPlugin, ...]
    post_filter: tuple[PostFilterPlugin, ...]
    pod_group_post_filter: tuple[PodGroupPostFilterPlugin, ...]
    pre_score: tuple[PreScorePlugin, ...]
    score: tuple[ScorePlugin, ...]
    reserve: tuple[ReservePlugin, ...]
    permit: tuple[PermitPlugin, ...]
    pre_bind: tuple[PreBindPlugin | StagedPreBindPlugin, ...]
    bind: tuple[BindPlugin, ...]
    post_bind: tuple[PostBindPlugin, ...]

    @classmethod
    def of(cls, profile: Profile) -> PointPlugins:
        """The plugins of a profile, which has checked that each implements its points."""
        at = profile.plugins
        return cls(
            cast("QueueSortPlugin", at[ExtensionPoint.QUEUE_SORT][0]),
            tuple(each for each in profile.instances.values() if implements(each, PreparingPlugin)),
            cast("tuple[PreFilterPlugin, ...]", at[ExtensionPoint.PRE_FILTER]),
            cast("tuple[FilterPlugin, ...]", at[ExtensionPoint.FILTER]),
            cast("tuple[PostFilterPlugin, ...]", at[ExtensionPoint.POST_FILTER]),
            tuple(
                each
                for each in at[ExtensionPoint.POST_FILTER]
                if implements(each, PodGroupPostFilterPlugin)
            ),
            cast("tuple[PreScorePlugin, ...]", at[ExtensionPoint.PRE_SCORE]),
            cast("tuple[ScorePlugin, ...]", at[ExtensionPoint.SCORE]),
            cast("tuple[ReservePlugin, ...]", at[ExtensionPoint.RESERVE]),
            cast("tuple[PermitPlugin, ...]", at[ExtensionPoint.PERMIT]),
            cast("tuple[PreBindPlugin | StagedPreBindPlugin, ...]", at[ExtensionPoint.PRE_BIND]),
            cast("tuple[BindPlugin, ...]", at[ExtensionPoint.BIND]),
            cast("tuple[PostBindPlugin, ...]", at[ExtensionPoint.POST_BIND]),
        )
