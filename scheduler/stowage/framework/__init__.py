"""Room ``framework``: the contract between the scheduler and its policies.

Purpose: say what a plugin may be asked (`extension_points`), build the plugins a profile names
(`registry`, `profile`) and run them (`runner` and the ``*_run`` modules, one per topic). Authors
of plugins outside this package import from `authoring`; `adapted_plugin` completes what they wrote.

How it is fast: a Filter or Score plugin answers for many nodes in one call, and declares what its
answer depends on (`Reads`). Answers about nodes and their usage are kept per pod class
(`class_cache`) and only rows that changed since are asked again; feasible rows and the sum of the
scores that need no normalising are kept merged, so that the second pod of a class costs a few
array operations. Plugins that read of the pod its demand only have one set of answers for all
classes of it; what those that go by a node's amounts said of some amounts is looked up, not asked
for again. Reasons for rejections are not kept but worked out when somebody asks, which is
only after no node was found.

How room is made: PostFilter plugins get a `DryRun`, which filters many nodes at once, each as it
would be without some of its own pods (`preemption`, `row_filter`), and leave a `Preemption`.
Nominated pods are counted in the same way (`nominated`).

Invariants:
    - Cached and uncached answers are equal (a property test holds them to it).
    - What-if snapshots never touch the cache.
    - A plugin that raises ends its pod's cycle with an Error status naming it, and nothing else.
    - Order of plugins decides which rejection a node is reported for, never which node is chosen.

Who may call it: ``plugins`` implement it; ``cycle``, ``binding`` and ``engine`` call `Framework`.
It does not know the queue, which receives order, gates and hints as callables.

Rejected: keeping every plugin's masks per class (five times the memory for answers that are only
needed when a pod is unschedulable); one node at a time as the native form (a thousand times
slower; `scalar` asks such plugins).
"""

from stowage.framework.authoring.adapted_plugin import AdaptedPlugin, plugin_factory
from stowage.framework.authoring.scalar import NodeInfo
from stowage.framework.cycle_state import CycleState
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
)
from stowage.framework.failure import PluginFailed
from stowage.framework.filter_result import FilterResult
from stowage.framework.handle import Handle, WaitingPod
from stowage.framework.node_verdicts import NodeVerdicts, PluginVerdict
from stowage.framework.plugin_traits import PluginTraits, Reads
from stowage.framework.preemption import (
    Candidate,
    DryRun,
    Preemption,
    ReviewedVictims,
    VictimReview,
)
from stowage.framework.profile.profile import (
    ExtensionPoint,
    Profile,
    build_profile,
    default_plugins,
)
from stowage.framework.profile.registry import NoArgs, PluginFactory, PluginUnusable, Registry
from stowage.framework.runtime.binding_run import PermitOutcome, PreBindPlan
from stowage.framework.runtime.framework import Framework
from stowage.framework.runtime.nominated_pods import NO_NOMINATIONS, Nominations
from stowage.framework.runtime.post_filter_run import PostFilterOutcome
from stowage.framework.runtime.pre_filter_run import PreFilterOutcome
from stowage.framework.runtime.score_run import PluginScores, ScoreResult
from stowage.framework.scores import default_normalize_score
from stowage.framework.timings import DurationObserver, Timings
from stowage.framework.verdict import ACCEPT_ALL, FilterVerdict, Rejection

__all__ = [
    "ACCEPT_ALL",
    "NO_NOMINATIONS",
    "AdaptedPlugin",
    "Candidate",
    "CycleState",
    "Diagnosis",
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
    "PermitOutcome",
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
    "Profile",
    "Reads",
    "Registry",
    "Rejection",
    "ReviewedVictims",
    "ScoreResult",
    "Timings",
    "VictimReview",
    "WaitingPod",
    "build_profile",
    "default_normalize_score",
    "default_plugins",
    "diagnose_filter",
    "diagnose_pre_filter",
    "fit_error_message",
    "plugin_factory",
]
