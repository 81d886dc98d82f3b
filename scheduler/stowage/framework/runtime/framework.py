"""The framework of one profile: runs its plugins at every extension point."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ParamSpec, TypeVar

from stowage.api.config.feature_gates import FeatureGates
from stowage.api.instructions import BindPod, BindVolumes
from stowage.api.interruptible import Interruptible
from stowage.api.status import SUCCESS, Code, Status
from stowage.framework.cycle_state import CycleState, PreparedCycle, StartLimit
from stowage.framework.diagnosis import Diagnosis
from stowage.framework.extension_points import (
    EventRegistration,
    PreBindPlugin,
    SnapshotReader,
    StagedPreBindPlugin,
)
from stowage.framework.failure import PluginFailed, failed
from stowage.framework.filter_result import FilterResult, PreFilterOutcome
from stowage.framework.implements import implements
from stowage.framework.placement_outlook import Outlook, Prospects
from stowage.framework.placements import PlacementRun
from stowage.framework.plugin_traits import Reads
from stowage.framework.preemption import VictimReview
from stowage.framework.profile.points import ExtensionPoint
from stowage.framework.profile.profile import Profile
from stowage.framework.runtime import binding_run
from stowage.framework.runtime.binding_run import (
    PermitOutcome,
    PreBindPlan,
    ReserveOutcome,
    StagedPreBind,
)
from stowage.framework.runtime.class_cache import ClassCache
from stowage.framework.runtime.class_repeats import ClassRepeats
from stowage.framework.runtime.dry_run import DryRun
from stowage.framework.runtime.enqueue_run import registered_events
from stowage.framework.runtime.evaluations import FILTER, PRE_FILTER, PRE_SCORE, SCORE, Evaluations
from stowage.framework.runtime.filter_run import FilterRun
from stowage.framework.runtime.gating import Gating
from stowage.framework.runtime.nominated_filter import overrule_nominated
from stowage.framework.runtime.nominated_pods import NO_NOMINATIONS, NominatedPods, Nominations
from stowage.framework.runtime.point_plugins import PointPlugins
from stowage.framework.runtime.post_filter_run import (
    PostFilterOutcome,
    run_pod_group_post_filter_plugins,
    run_post_filter_plugins,
)
from stowage.framework.runtime.pre_filter_run import PASSED, run_pre_filter_plugins
from stowage.framework.runtime.pre_score_run import run_pre_score_plugins
from stowage.framework.runtime.row_filter import RowFilter
from stowage.framework.runtime.score_result import ScoreResult
from stowage.framework.runtime.score_run import ScoreRun
from stowage.framework.runtime.tie_run import TieRun
from stowage.framework.tie_policy import BrokenTie, Draw
from stowage.framework.timings import code_of, timed_steps
from stowage.framework.verdict import Int64Array
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView, Snapshot

P = ParamSpec("P")
R = TypeVar("R")

DEFAULT_CLASS_CACHE_SIZE = 1024


class Framework:
    """Runs the plugins of a profile; ``frameworkImpl`` of v1.36.

    Args:
        profile: The plugins and their order.
        class_cache_size: Number of pod classes whose answers are kept; 0 keeps none. Kept answers
            belong to one cluster: give every engine its own framework.

    Attributes:
        sort_key: The sort key of the QueueSort plugin.
        gating: Runs the PreEnqueue plugins.
        placements: Runs the plugins that rank placements of pod groups.
        evaluations: Counts of plugin evaluations.
    """

    def __init__(
        self, profile: Profile, *, class_cache_size: int = DEFAULT_CLASS_CACHE_SIZE
    ) -> None:
        self.profile = profile
        self.events_by_plugin: Mapping[str, Sequence[EventRegistration]] = registered_events(
            profile.instances.values()
        )
        self.gating = Gating(profile)
        self._plugins = plugins = PointPlugins.of(profile)
        self.sort_key = plugins.queue_sort.sort_key
        # If the sort key of an out-of-tree plugin is invalid, PreFilter fails with its error.
        self._unsortable = getattr(plugins.queue_sort, "unsortable", None)
        self._staged = {
            each.name: each for each in plugins.pre_bind if implements(each, StagedPreBindPlugin)
        }
        self._filters = FilterRun(
            plugins.filter,
            ClassCache(class_cache_size),
            counts_all=profile.always_check_all_predicates,
        )
        self._scorers = ScoreRun(plugins.score, profile.weights, ClassCache(class_cache_size))
        self._ties = TieRun(profile.ties)
        self._rejects_per_class = self._unsortable is None and all(
            each.traits.rejects_per_class
            for each in (*plugins.pre_filter, *plugins.filter, *plugins.post_filter)
        )
        self._preempts_per_demand = self._rejects_per_class and all(
            each.traits.reads_only_node_demand for each in plugins.post_filter
        )
        self._repeats = ClassRepeats(plugins.pre_filter, plugins.pre_score)
        self._nominated = NominatedPods()
        self.placements = PlacementRun(
            tuple(profile.instances.values()), profile.weights, plugins.filter, plugins.permit
        )
        self.evaluations = Evaluations(
            {
                PRE_FILTER: [each.name for each in plugins.pre_filter],
                FILTER: [each.name for each in plugins.filter],
                PRE_SCORE: [each.name for each in plugins.pre_score],
                SCORE: [each.name for each in plugins.score],
            }
        )

    @property
    def scheduler_name(self) -> str:
        """The ``schedulerName`` of the profile's pods."""
        return self.profile.scheduler_name

    @property
    def rates_nodes(self) -> bool:
        """Whether it matters which of several feasible nodes a pod gets.

        Without Score plugins it does not, unless the profile says how ties are broken.
        """
        profile = self.profile
        return bool(profile.plugins[ExtensionPoint.SCORE]) or not profile.ties.is_random

    @property
    def gates(self) -> FeatureGates:
        """The feature gates of the process."""
        return self.profile.gates

    def run_pre_enqueue(self, pod: PodInfo) -> Status:
        """Whether the pod may enter the queue; a rejection names its plugin."""
        return self.gating.run(pod)

    def prepare(self, pod: PodInfo, snapshot: Snapshot, start_limit: StartLimit) -> Iterator[None]:
        """Let plugins do in steps what may take long in the cycle of a pod that follows."""
        for plugin in self._plugins.preparing:
            yield from plugin.prepare_in_steps(pod, snapshot, start_limit)

    def run_pre_filter(
        self,
        state: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
        before: PreparedCycle | None = None,
    ) -> PreFilterOutcome:
        """Run PreFilter; a rejection or error is in the outcome's status.

        Args:
            state: Fresh.
            pod: The pod.
            snapshot: The cluster.
            before: What was left for a pod of the same class that has just been placed, and that
                PreFilter let pass on all nodes; None if there is none.
        """
        if before is not None and self._repeats.filtered(before):
            state.take_over(before)
            self.evaluations.add(PRE_FILTER, state.skip_filter)
            return PASSED
        if self._unsortable is not None and (problem := self._unsortable(pod, 0.0)) is not None:
            name = self._plugins.queue_sort.name
            failure = failed(f'running QueueSort plugin "{name}"', name, problem)
            return PreFilterOutcome(failure.status)
        run = self._timed(state, "PreFilter", run_pre_filter_plugins)
        outcome = run(self._plugins.pre_filter, state, pod, snapshot)
        code, stopped_at = outcome.status.code, ""
        if code is not Code.SUCCESS and code is not Code.UNSCHEDULABLE:
            # After Unschedulable the other plugins still run; any other failure ends the run.
            stopped_at = outcome.status.plugin
        self.evaluations.add(PRE_FILTER, state.skip_filter, stopped_at=stopped_at)
        return outcome

    def run_filter(
        self,
        state: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
        node_names: frozenset[str] | None = None,
        nominated: Nominations = NO_NOMINATIONS,
    ) -> FilterResult:
        """Filter all nodes, or those of `node_names`.

        Args:
            state: The cycle's state after PreFilter.
            pod: The pod.
            snapshot: The cluster.
            node_names: The nodes that PreFilter left; None for all.
            nominated: All nominations in the cluster; pods of equal or higher priority count on
                their nominated nodes.

        Raises:
            PluginFailed: A plugin raised.
        """
        run = self._timed(state, "Filter", self._filter)
        return run(state, pod, snapshot, node_names, nominated)

    def _filter(
        self,
        state: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
        node_names: frozenset[str] | None,
        nominated: Nominations,
    ) -> FilterResult:
        result = self._filters.run(state, pod, snapshot, node_names)
        self.evaluations.add(FILTER, state.skip_filter, result.num_evaluated)
        if not len(nominated):
            return result
        others = self._nominated.beside(pod, nominated, snapshot)
        return overrule_nominated(self._row_filter(state, pod), pod, result, others)

    def prepare_post_filter(
        self,
        state: CycleState,
        pod: PodInfo,
        nominated: Nominations,
        choose: Callable[[int], int],
        review: VictimReview | None = None,
    ) -> None:
        """Leave in `state` the `DryRun`, and the review of extenders, for PostFilter plugins.

        Args:
            state: The cycle's state after PreFilter.
            pod: The pod.
            nominated: All nominations in the cluster.
            choose: Returns an index below its argument.
            review: The candidates that extenders left; None if they were not called.
        """
        others = partial(self._nominated.beside, pod, nominated)
        state.write(DryRun(self._row_filter(state, pod), pod, others, choose))
        if review is not None:
            state.write(review)

    def run_post_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, diagnosis: Diagnosis
    ) -> Interruptible[PostFilterOutcome]:
        """Run PostFilter in steps for a pod without a feasible node; `snapshot` stays as it is."""
        name, timings = self.scheduler_name, state.timings
        stopwatch = None if timings is None else timings.stopwatch("PostFilter", name)
        plugins = self._plugins.post_filter
        steps = run_post_filter_plugins(plugins, state, pod, snapshot, diagnosis)
        return (yield from timed_steps(stopwatch, steps))

    @property
    def lets_groups_preempt(self) -> bool:
        """Whether a pod group may evict as a whole: one of the PostFilter plugins is for groups."""
        return bool(self._plugins.pod_group_post_filter)

    def run_pod_group_post_filter(self, victims: Sequence[PodInfo], snapshot: Snapshot) -> Status:
        """Whether a pod group may evict these pods; a rejection names its plugin."""
        return run_pod_group_post_filter_plugins(
            self._plugins.pod_group_post_filter, victims, snapshot
        )

    def refuses_like_its_class(self, pod: PodInfo, snapshot: Snapshot) -> bool:
        """Whether the rejection of one pod of a class holds for this pod too.

        All plugins must have the trait `PluginTraits.rejects_per_class`. Extended resources that
        device classes serve count as resource claims.
        """
        return (
            self._rejects_per_class
            and not pod.volumes
            and not pod.spec.resource_claims
            and not snapshot.devices.serves(pod.requests)
            and not pod.nominated_node_name
            and not pod.node_name
        )

    def refusal_key(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> Hashable:
        """The key of all pods that are rejected alike, once PreFilter has run; None for no others.

        They differ in what no plugin reads that takes part: labels, owner, namespace.
        """
        active = self._filters.active(state)
        if not (self._preempts_per_demand and active.per_demand):
            return None
        if not self.refuses_like_its_class(pod, snapshot):
            return None
        return pod.pod_class.demand.id, active

    def count_refusal(
        self, skipped: frozenset[str], num_nodes: int, *, ran_pre_filter: bool = False
    ) -> None:
        """Count the evaluations of a pod that gets the rejection of another.

        Args:
            skipped: The plugins that skip the pod.
            num_nodes: Number of nodes that Filter would have evaluated.
            ran_pre_filter: Whether PreFilter has run for this pod.
        """
        if not ran_pre_filter:
            self.evaluations.add(PRE_FILTER, skipped)
        self.evaluations.add(FILTER, skipped, num_nodes)

    def read_snapshots(self, snapshot: Callable[[], Snapshot]) -> None:
        """Connect the plugins that read the cluster outside the scheduling cycle."""
        for plugin in (*self.profile.instances.values(), *self.profile.ties.plugins):
            if implements(plugin, SnapshotReader):
                plugin.read_snapshots(snapshot)

    def run_pre_score(
        self,
        state: CycleState,
        pod: PodInfo,
        nodes: NodeView,
        before: PreparedCycle | None = None,
    ) -> Status:
        """Run PreScore on the feasible `nodes`; any status but Success ends the cycle.

        `before` is as in `run_pre_filter`, which was called with it.
        """
        repeats = before is not None and self._repeats.filtered(before)
        if before is not None and repeats and self._repeats.scored(before):
            state.skip_score = set(before.skip_score or ())
            self.evaluations.add(PRE_SCORE, state.skip_score)
            return SUCCESS
        status = self._timed(state, "PreScore", run_pre_score_plugins)(
            self._plugins.pre_score, state, pod, nodes
        )
        if status.is_success:
            self.evaluations.add(PRE_SCORE, state.skip_score)
        return status

    def run_score(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: Int64Array
    ) -> ScoreResult:
        """Score the feasible nodes in `rows` (ascending).

        Raises:
            PluginFailed: A plugin raised, or a score is not in 0..100.
        """
        self.evaluations.add(SCORE, state.skip_score, len(rows))
        return self._timed(state, "Score", self._scorers.run)(state, pod, snapshot, rows)

    def break_tie(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: Int64Array, draw: Draw
    ) -> tuple[int, BrokenTie]:
        """Take one of several rows with the highest total; see `TieRun.run`.

        Raises:
            PluginFailed: A plugin that was asked about the tied nodes failed.
        """
        return self._ties.run(state, pod, snapshot, rows, draw)

    def placement_outlook(
        self, state: CycleState, snapshot: Snapshot, prospects: Prospects
    ) -> Outlook | None:
        """What is known about the placements of a pod group that is not tried yet.

        Args:
            state: A fresh one, for the first member.
            snapshot: The cluster.
            prospects: The placements.

        Returns:
            None if a plugin scores placements and does not know beforehand what they score at most,
            or if a PostFilter plugin has to be asked in each of them.

        Raises:
            PluginFailed: A plugin that ranks placements raised.
        """
        filtered = self._filter_for_all(state, prospects, snapshot)
        return self.placements.outlook(snapshot, prospects, filtered)

    def rejects_beside_more_pods(self, state: CycleState, pod: PodInfo, snapshot: Snapshot) -> bool:
        """Whether nodes that Filter rejects for a pod are rejected, too, with more pods placed.

        The same then holds for others of its class without volumes and claims.

        Args:
            state: A fresh one; PreFilter leaves in it what `run_filter` needs.
            pod: The pod.
            snapshot: The cluster.

        Returns:
            False also if PreFilter does not let the pod pass on all nodes.
        """
        return self.run_pre_filter(state, pod, snapshot).is_unlimited and all(
            each.filter_reads is Reads.NODE or (each.never_needs_pods and each.rejects_per_class)
            for each in (plugin.traits for plugin in self._filters.active(state).all)
        )

    def _filter_for_all(
        self, state: CycleState, prospects: Prospects, snapshot: Snapshot
    ) -> FilterResult | None:
        """The result of Filter about the first member, if the others are rejected where it is."""
        pod, are_alike = prospects.members[0], prospects.are_filtered_alike(snapshot.devices)
        if not are_alike or not self.rejects_beside_more_pods(state, pod, snapshot):
            return None
        try:
            return self.run_filter(state, pod, snapshot)
        except PluginFailed:
            return None  # it fails the member that is tried first, too

    def run_reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> ReserveOutcome:
        """Run Reserve; if it fails, all plugins have been unreserved."""
        run = self._timed(state, "Reserve", binding_run.run_reserve_plugins)
        return run(self._plugins.reserve, state, pod, node_name)

    def run_unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Run Unreserve.

        Raises:
            PluginFailed: A plugin raised; the others have run.
        """
        run = self._timed(state, "Unreserve", binding_run.run_unreserve_plugins)
        run(self._plugins.reserve, state, pod, node_name)

    def run_permit(self, state: CycleState, pod: PodInfo, node_name: str) -> PermitOutcome:
        """Run Permit: accept, reject or wait."""
        run = self._timed(state, "Permit", binding_run.run_permit_plugins)
        return run(self._plugins.permit, state, pod, node_name)

    def plan_pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> PreBindPlan:
        """Run PreBindPreFlight: the PreBind plugins that have work to do."""
        run = self._timed(state, "PreBindPreFlight", binding_run.plan_pre_bind, _code_of_plan)
        return run(self._plugins.pre_bind, state, pod, node_name)

    async def run_pre_bind(
        self, state: CycleState, pod: PodInfo, node_name: str, plugins: Sequence[str]
    ) -> Status:
        """Run PreBind of these plugins; the operator awaits it outside the cycle."""
        working = [
            plugin
            for plugin in self._plugins.pre_bind
            if plugin.name in plugins and implements(plugin, PreBindPlugin)
        ]
        return await binding_run.run_pre_bind_plugins(working, state, pod, node_name)

    def binds_volumes(self, plugin: str) -> bool:
        """Whether a plugin's PreBind binds volumes."""
        staged = self._staged.get(plugin)
        return staged is not None and staged.pre_bind_target is BindVolumes

    def staged_pre_bind(
        self, state: CycleState, pod: PodInfo, node_name: str, plugin: str
    ) -> StagedPreBind | None:
        """The staged PreBind of a plugin; None if its PreBind is a coroutine."""
        staged = self._staged.get(plugin)
        return None if staged is None else StagedPreBind(staged, state, pod, node_name)

    def run_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[str, BindPod]:
        """Run Bind: the plugin that binds the pod, and its instruction.

        Raises:
            PluginFailed: A plugin raised, or none binds the pod.
        """
        return binding_run.run_bind_plugins(self._plugins.bind, state, pod, node_name)

    def nomination_problems(self, nominated: Nominations, snapshot: Snapshot) -> Iterator[str]:
        """Differences between the columns of nominated pods and the nominations; for invariants."""
        return self._nominated.problems(nominated, snapshot)

    def _row_filter(self, state: CycleState, pod: PodInfo) -> RowFilter:
        filters = self._filters.active(state).all
        return RowFilter(filters, state, pod, counts_all=self.profile.always_check_all_predicates)

    def run_post_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Run PostBind.

        Raises:
            PluginFailed: A plugin raised; the others have run.
        """
        run = self._timed(state, "PostBind", binding_run.run_post_bind_plugins)
        run(self._plugins.post_bind, state, pod, node_name)

    def _timed(
        self,
        state: CycleState,
        point: str,
        run: Callable[P, R],
        read_code: Callable[[Any], Code] = code_of,
    ) -> Callable[P, R]:
        """`run`, which runs an extension point; in a sampled cycle its duration is observed."""
        if state.timings is None:
            return run
        return state.timings.of_point(point, self.scheduler_name, run, read_code)


def _code_of_plan(plan: PreBindPlan) -> Code:
    return Code.SKIP if plan.status.is_success and not plan.plugins else plan.status.code
