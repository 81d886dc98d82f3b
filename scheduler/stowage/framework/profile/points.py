"""The extension points, and at which of them a plugin takes part."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from weakref import WeakKeyDictionary

from stowage.framework.extension_points import (
    BindPlugin,
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
    StagedPreBindPlugin,
)
from stowage.framework.implements import implements, members_of


class ExtensionPoint(StrEnum):
    """The extension points, named as in the configuration."""

    QUEUE_SORT = "queueSort"
    PRE_ENQUEUE = "preEnqueue"
    PRE_FILTER = "preFilter"
    FILTER = "filter"
    POST_FILTER = "postFilter"
    PRE_SCORE = "preScore"
    SCORE = "score"
    RESERVE = "reserve"
    PERMIT = "permit"
    PRE_BIND = "preBind"
    BIND = "bind"
    POST_BIND = "postBind"


#: A plugin that takes part at an extension point implements one of these protocols.
PROTOCOLS: Mapping[ExtensionPoint, tuple[type, ...]] = {
    ExtensionPoint.QUEUE_SORT: (QueueSortPlugin,),
    ExtensionPoint.PRE_ENQUEUE: (PreEnqueuePlugin,),
    ExtensionPoint.PRE_FILTER: (PreFilterPlugin,),
    ExtensionPoint.FILTER: (FilterPlugin,),
    ExtensionPoint.POST_FILTER: (PostFilterPlugin,),
    ExtensionPoint.PRE_SCORE: (PreScorePlugin,),
    ExtensionPoint.SCORE: (ScorePlugin,),
    ExtensionPoint.RESERVE: (ReservePlugin,),
    ExtensionPoint.PERMIT: (PermitPlugin,),
    ExtensionPoint.PRE_BIND: (PreBindPlugin, StagedPreBindPlugin),
    ExtensionPoint.BIND: (BindPlugin,),
    ExtensionPoint.POST_BIND: (PostBindPlugin,),
}

#: Points at which plugins of kube-scheduler take part and the ones here have nothing to do. A
#: profile may enable them there.
IDLE_POINTS: Mapping[str, frozenset[ExtensionPoint]] = {
    "NodeResourcesFit": frozenset({ExtensionPoint.PRE_SCORE}),
    "TaintToleration": frozenset({ExtensionPoint.PRE_SCORE}),
    "VolumeBinding": frozenset({ExtensionPoint.SCORE}),
}


def takes_part(plugin: Plugin, point: ExtensionPoint) -> bool:
    """Whether a plugin implements a protocol of an extension point."""
    return point in points_of(plugin)


def points_of(plugin: Plugin) -> frozenset[ExtensionPoint]:
    """The extension points at which a plugin takes part.

    Found once for all objects of a class with the same members of their own: a profile has two
    dozen plugins, and each may take part at a dozen points.
    """
    own = _MEMBERS.intersection(getattr(plugin, "__dict__", ()))
    of_class = _POINTS_OF_CLASSES.setdefault(type(plugin), {})
    known = of_class.get(own)
    if known is None:
        known = of_class[own] = frozenset(
            point
            for point, protocols in PROTOCOLS.items()
            if any(implements(plugin, protocol) for protocol in protocols)
        )
    return known


#: The members by which plugins take part; every plugin has a name and traits.
_MEMBERS = frozenset(
    name for protocols in PROTOCOLS.values() for each in protocols for name in members_of(each)
).difference(members_of(Plugin))

#: Class -> members of an object's own -> points.
_POINTS_OF_CLASSES: WeakKeyDictionary[type, dict[frozenset[str], frozenset[ExtensionPoint]]] = (
    WeakKeyDictionary()
)
