"""Room ``framework``: the interface of plugins, and the runtime that runs them.

Structure: the modules of this folder are the interface (extension points, traits, verdicts, scores,
the cycle's state, diagnosis). `runtime` runs the plugins of a profile, `profile` builds them from
the configuration, and `authoring` is what authors of out-of-tree plugins import. The interface
imports none of the three.

How it is fast: a Filter or Score plugin answers for many nodes in one call and declares what its
answer depends on (`PluginTraits`). The runtime keeps answers per equivalence class of pods and asks
again only about rows that changed. It keeps the feasible rows and the sum of the scores that are
not normalised, so that the second pod of a class costs a few array operations. Reasons for
rejections are not kept: they are computed when no node is feasible.

Preemption: PostFilter plugins get a `DryRun`, which filters many nodes at once, each as it would be
without some of its own pods, and leave a `Preemption`. Nominated pods are counted in the same way.

Invariants:
    - Cached and uncached answers are equal (held by a property test).
    - Answers about what-if snapshots are never cached.
    - A plugin that raises ends the cycle of one pod with an Error status that names the plugin.
    - The order of plugins decides which rejection is reported, never which node is chosen.

Callers: ``plugins`` implement the interface; ``engine`` calls `Framework`, and so does
``analysis``, which explains; ``cli`` builds the profiles. The framework does not know the queue,
which receives order, gates and hints as callables.

Rejected: keeping the masks of every plugin per class (five times the memory, needed only when a pod
is unschedulable); one node at a time as the native form (a thousand times slower; `authoring`
adapts such plugins).
"""

from stowage.framework.authoring.adapted_plugin import AdaptedPlugin, plugin_factory
from stowage.framework.authoring.scalar import NodeInfo
from stowage.framework.cycle_state import CycleState, PreparedCycle, StartLimit
from stowage.framework.diagnosis import (
    Diagnosis,
    diagnose_filter,
    diagnose_pre_filter,
    fit_error_message,
)
from stowage.framework.extension_points import (
    EventRegistration,
    Plugin,
    PreBindProgress,
    PreFilterResult,
    ReservePlan,
    SnapshotReader,
)
from stowage.framework.failure import PluginFailed
from stowage.framework.filter_result import FilterResult, PreFilterOutcome
from stowage.framework.handle import Handle, WaitingPod
from stowage.framework.node_verdicts import NodeVerdicts, PluginVerdict
from stowage.framework.placement_outlook import Outlook, Prospects
from stowage.framework.placements import CompanionClaims, PlacedMembers
from stowage.framework.plugin_traits import PluginTraits, Reads
from stowage.framework.preemption import (
    Candidate,
    Preemption,
    PreemptionBarred,
    ReviewedVictims,
    VictimReview,
)
from stowage.framework.profile.points import ExtensionPoint
from stowage.framework.profile.profile import Profile, build_profile, default_plugins
from stowage.framework.profile.registry import NoArgs, PluginFactory, PluginUnusable, Registry
from stowage.framework.runtime.binding_run import PermitOutcome, PreBindPlan
from stowage.framework.runtime.class_repeats import is_plain
from stowage.framework.runtime.dry_run import DryRun
from stowage.framework.runtime.framework import Framework
from stowage.framework.runtime.nominated_pods import NO_NOMINATIONS, Nominations
from stowage.framework.runtime.post_filter_run import PostFilterOutcome
from stowage.framework.runtime.score_result import PluginScores, ScoreResult
from stowage.framework.scores import default_normalize_score
from stowage.framework.tie_policy import BrokenTie, Draw, TiePolicy
from stowage.framework.timings import DurationObserver, Timings, TraceCycle
from stowage.framework.verdict import ACCEPT_ALL, FilterVerdict, Rejection

__all__ = [
    "ACCEPT_ALL",
    "NO_NOMINATIONS",
    "AdaptedPlugin",
    "BrokenTie",
    "Candidate",
    "CompanionClaims",
    "CycleState",
    "Diagnosis",
    "Draw",
    "DryRun",
    "DurationObserver",
    "EventRegistration",
    "ExtensionPoint",
    "FilterResult",
    "FilterVerdict",
    "Framework",
    "Handle",
    "NoArgs",
    "NodeInfo",
    "NodeVerdicts",
    "Nominations",
    "Outlook",
    "PermitOutcome",
    "PlacedMembers",
    "Plugin",
    "PluginFactory",
    "PluginFailed",
    "PluginScores",
    "PluginTraits",
    "PluginUnusable",
    "PluginVerdict",
    "PostFilterOutcome",
    "PreBindPlan",
    "PreBindProgress",
    "PreFilterOutcome",
    "PreFilterResult",
    "Preemption",
    "PreemptionBarred",
    "PreparedCycle",
    "Profile",
    "Prospects",
    "Reads",
    "Registry",
    "Rejection",
    "ReservePlan",
    "ReviewedVictims",
    "ScoreResult",
    "SnapshotReader",
    "StartLimit",
    "TiePolicy",
    "Timings",
    "TraceCycle",
    "VictimReview",
    "WaitingPod",
    "build_profile",
    "default_normalize_score",
    "default_plugins",
    "diagnose_filter",
    "diagnose_pre_filter",
    "fit_error_message",
    "is_plain",
    "plugin_factory",
]
