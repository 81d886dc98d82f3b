"""The framework of one profile: every extension point, ready to run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ParamSpec, TypeVar, cast

from stowage.api.instructions import BindPod
from stowage.api.status import Code, Status
from stowage.framework.cycle_state import CycleState
from stowage.framework.diagnosis import Diagnosis
from stowage.framework.extension_points import (
    BindPlugin,
    EventRegistration,
    FilterPlugin,
    PermitPlugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreemptionGate,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
    StagedPreBindPlugin,
)
from stowage.framework.failure import failed
from stowage.framework.filter_result import FilterResult, PreFilterOutcome
from stowage.framework.preemption import VictimReview
from stowage.framework.profile.profile import ExtensionPoint, Profile
from stowage.framework.runtime import binding_run
from stowage.framework.runtime.binding_run import (
    PermitOutcome,
    PreBindPlan,
    ReserveOutcome,
    StagedPreBind,
)
from stowage.framework.runtime.class_cache import ClassCache
from stowage.framework.runtime.dry_run import DryRun
from stowage.framework.runtime.enqueue_run import (
    registered_events,
    run_pre_enqueue_plugins,
)
from stowage.framework.runtime.evaluations import FILTER, PRE_FILTER, PRE_SCORE, SCORE, Evaluations
from stowage.framework.runtime.filter_run import FilterRun
from stowage.framework.runtime.nominated_filter import overrule_nominated
from stowage.framework.runtime.nominated_pods import NO_NOMINATIONS, NominatedPods, Nominations
from stowage.framework.runtime.post_filter_run import PostFilterOutcome, run_post_filter_plugins
from stowage.framework.runtime.pre_filter_run import run_pre_filter_plugins
from stowage.framework.runtime.pre_score_run import run_pre_score_plugins
from stowage.framework.runtime.row_filter import RowFilter
from stowage.framework.runtime.score_run import ScoreResult, ScoreRun
from stowage.framework.timings import code_of
from stowage.framework.verdict import Int64Array
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView, Snapshot

P = ParamSpec("P")
R = TypeVar("R")

DEFAULT_CLASS_CACHE_SIZE = 1024


class Framework:
    """Runs the plugins of a profile; ``frameworkImpl`` of v1.36.

    Args:
        profile: Which plugins, in which order.
        class_cache_size: For how many pod classes answers are kept; 0 keeps none. The answers
            are those of one cluster: give every engine its own framework.

    Attributes:
        sort_key: Where a pod stands in the active queue; that of the QueueSort plugin.
        evaluations: How often its plugins were asked.
    """

    def __init__(
        self, profile: Profile, *, class_cache_size: int = DEFAULT_CLASS_CACHE_SIZE
    ) -> None:
        self.profile = profile
        self.events_by_plugin: Mapping[str, Sequence[EventRegistration]] = registered_events(
            profile.instances.values()
        )
        points = profile.plugins
        queue_sort = cast("QueueSortPlugin", points[ExtensionPoint.QUEUE_SORT][0])
        self.sort_key = queue_sort.sort_key
        # A plugin of one's own may have no place for a pod, which then is last and ends here.
        self._unsortable = getattr(queue_sort, "unsortable", None)
        self._queue_sort_name = queue_sort.name
        self._pre_enqueue = cast("tuple[PreEnqueuePlugin, ...]", points[ExtensionPoint.PRE_ENQUEUE])
        self._pre_enqueue_again = tuple(
            each for each in self._pre_enqueue if not each.traits.pre_enqueue_per_class
        )
        self._has_gates_per_pod = not all(
            isinstance(each, PreemptionGate) for each in self._pre_enqueue_again
        )
        self._is_anybody_preempting: Callable[[], bool] = lambda: True
        self._pre_filter = cast("tuple[PreFilterPlugin, ...]", points[ExtensionPoint.PRE_FILTER])
        self._post_filter = cast("tuple[PostFilterPlugin, ...]", points[ExtensionPoint.POST_FILTER])
        self._pre_score = cast("tuple[PreScorePlugin, ...]", points[ExtensionPoint.PRE_SCORE])
        self._reserve = cast("tuple[ReservePlugin, ...]", points[ExtensionPoint.RESERVE])
        self._permit = cast("tuple[PermitPlugin, ...]", points[ExtensionPoint.PERMIT])
        self._pre_bind = cast(
            "tuple[PreBindPlugin | StagedPreBindPlugin, ...]", points[ExtensionPoint.PRE_BIND]
        )
        self._bind = cast("tuple[BindPlugin, ...]", points[ExtensionPoint.BIND])
        self._post_bind = cast("tuple[PostBindPlugin, ...]", points[ExtensionPoint.POST_BIND])
        filters = cast("tuple[FilterPlugin, ...]", points[ExtensionPoint.FILTER])
        self._filters = FilterRun(filters, ClassCache(class_cache_size))
        scorers = cast("tuple[ScorePlugin, ...]", points[ExtensionPoint.SCORE])
        self._scorers = ScoreRun(scorers, profile.weights, ClassCache(class_cache_size))
        self._rejects_per_class = self._unsortable is None and all(
            each.traits.rejects_per_class
            for each in (*self._pre_filter, *filters, *self._post_filter)
        )
        self._nominated = NominatedPods()
        self._releasing: dict[str, Callable[[], Collection[str]]] = {}
        self.evaluations = Evaluations(
            {
                PRE_FILTER: [each.name for each in self._pre_filter],
                FILTER: [each.name for each in filters],
                PRE_SCORE: [each.name for each in self._pre_score],
                SCORE: [each.name for each in scorers],
            }
        )

    @property
    def scheduler_name(self) -> str:
        """Whose pods this profile schedules."""
        return self.profile.scheduler_name

    def run_pre_enqueue(self, pod: PodInfo) -> Status:
        """Whether the pod may be queued; a rejection names its plugin."""
        return run_pre_enqueue_plugins(self._pre_enqueue, pod)

    @property
    def gates_per_pod(self) -> bool:
        """Whether a PreEnqueue plugin may now say one thing of a pod, another of one of its class.

        As long as nobody preempts, the gate of preemptors is open to all.
        """
        if self._is_anybody_preempting():
            return bool(self._pre_enqueue_again)
        return self._has_gates_per_pod

    def run_pre_enqueue_again(self, pod: PodInfo) -> Status:
        """`run_pre_enqueue` for a pod of whose class another one was let in just now."""
        return run_pre_enqueue_plugins(self._pre_enqueue_again, pod)

    def run_pre_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> PreFilterOutcome:
        """Look at the pod once; a rejection or error is in the outcome's status."""
        if self._unsortable is not None and (problem := self._unsortable(pod, 0.0)) is not None:
            name = self._queue_sort_name
            failure = failed(f'running QueueSort plugin "{name}"', name, problem)
            return PreFilterOutcome(failure.status)
        run = self._timed(state, "PreFilter", run_pre_filter_plugins)
        outcome = run(self._pre_filter, state, pod, snapshot)
        code, stopped_at = outcome.status.code, ""
        if code is not Code.SUCCESS and code is not Code.UNSCHEDULABLE:
            # A plain rejection lets the other plugins run, anything worse does not.
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
        """Judge all nodes, or those of `node_names`.

        Args:
            state: After PreFilter.
            pod: The pod.
            snapshot: The cluster.
            node_names: The nodes PreFilter left; None for all.
            nominated: All nominations in the cluster; those of equal or higher priority are
                counted in on their nodes.

        Raises:
            PluginFailed: A plugin raised or answered masks of a wrong length.
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
        """Leave in `state` what a plugin needs that makes room by taking pods away.

        Args:
            state: After PreFilter.
            pod: The pod.
            nominated: All nominations in the cluster.
            choose: Gives an index below its argument.
            review: What extenders left of the candidates, if they have been asked.
        """
        others = partial(self._nominated.beside, pod, nominated)
        state.write(DryRun(self._row_filter(state, pod), pod, others, choose))
        if review is not None:
            state.write(review)

    def run_post_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, diagnosis: Diagnosis
    ) -> PostFilterOutcome:
        """Try to make room for a pod that fits nowhere."""
        run = self._timed(state, "PostFilter", run_post_filter_plugins)
        return run(self._post_filter, state, pod, snapshot, diagnosis)

    def refuses_like_its_class(self, pod: PodInfo) -> bool:
        """Whether a pod that fits nowhere is told why in the same words as all of its class."""
        return (
            self._rejects_per_class
            and not pod.volumes
            and not pod.spec.resource_claims
            and not pod.nominated_node_name
            and not pod.node_name
        )

    def count_refusal(self, skipped: frozenset[str], num_nodes: int) -> None:
        """Count evaluations for a pod that is refused without being judged.

        Args:
            skipped: The plugins that skip it.
            num_nodes: How many nodes Filter would have been asked about.
        """
        self.evaluations.add(PRE_FILTER, skipped)
        self.evaluations.add(FILTER, skipped, num_nodes)

    def gate_by(
        self,
        is_preempting: Callable[[str], bool],
        is_anybody: Callable[[], bool],
        released: Callable[[], Collection[str]],
    ) -> None:
        """Tell the plugins that gate preemptors whom evictions are under way for, if anybody.

        Args:
            is_preempting: Whether they are for the pod of this UID.
            is_anybody: Whether they are for any pod.
            released: The UIDs of gated pods for which they are no more.
        """
        self._is_anybody_preempting = is_anybody
        for plugin in self.profile.instances.values():
            if isinstance(plugin, PreemptionGate):
                plugin.gate_by(is_preempting)
                self._releasing[plugin.name] = released

    def released(self, plugin: str) -> Collection[str] | None:
        """Whom a plugin that gates preemptors would let in; None if it is no such plugin."""
        released = self._releasing.get(plugin)
        return None if released is None else released()

    def run_pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Status:
        """Prepare scoring of the feasible `nodes`; anything but success ends the cycle."""
        status = self._timed(state, "PreScore", run_pre_score_plugins)(
            self._pre_score, state, pod, nodes
        )
        if status.is_success:
            self.evaluations.add(PRE_SCORE, state.skip_score)
        return status

    def run_score(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: Int64Array
    ) -> ScoreResult:
        """Score the feasible nodes in `rows` (ascending).

        Raises:
            PluginFailed: A plugin raised, or left 0..100.
        """
        self.evaluations.add(SCORE, state.skip_score, len(rows))
        return self._timed(state, "Score", self._scorers.run)(state, pod, snapshot, rows)

    def run_reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> ReserveOutcome:
        """Run Reserve; if it fails, all plugins have unreserved."""
        run = self._timed(state, "Reserve", binding_run.run_reserve_plugins)
        return run(self._reserve, state, pod, node_name)

    def run_unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Give back what was reserved.

        Raises:
            PluginFailed: A plugin raised; the others have run all the same.
        """
        run = self._timed(state, "Unreserve", binding_run.run_unreserve_plugins)
        run(self._reserve, state, pod, node_name)

    def run_permit(self, state: CycleState, pod: PodInfo, node_name: str) -> PermitOutcome:
        """The last word: go, no, or wait."""
        run = self._timed(state, "Permit", binding_run.run_permit_plugins)
        return run(self._permit, state, pod, node_name)

    def plan_pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> PreBindPlan:
        """Which PreBind plugins have work to do."""
        run = self._timed(state, "PreBindPreFlight", binding_run.plan_pre_bind, _code_of_plan)
        return run(self._pre_bind, state, pod, node_name)

    async def run_pre_bind(
        self, state: CycleState, pod: PodInfo, node_name: str, plugins: Sequence[str]
    ) -> Status:
        """Do the work of these PreBind plugins; for the shell, outside the cycle."""
        working = [
            plugin
            for plugin in self._pre_bind
            if plugin.name in plugins and isinstance(plugin, PreBindPlugin)
        ]
        if state.timings is None:
            return await binding_run.run_pre_bind_plugins(working, state, pod, node_name)
        with state.timings.stopwatch("PreBind", self.scheduler_name) as stopwatch:
            status = await binding_run.run_pre_bind_plugins(working, state, pod, node_name)
            stopwatch.code = status.code
            return status

    def has_staged_pre_bind(self, plugin: str) -> bool:
        """Whether a plugin does its PreBind in stages."""
        return any(
            each.name == plugin and isinstance(each, StagedPreBindPlugin) for each in self._pre_bind
        )

    def staged_pre_bind(
        self, state: CycleState, pod: PodInfo, node_name: str, plugin: str
    ) -> StagedPreBind | None:
        """The PreBind of a plugin that does it in stages; None if it is a coroutine."""
        for each in self._pre_bind:
            if each.name == plugin and isinstance(each, StagedPreBindPlugin):
                return StagedPreBind(each, state, pod, node_name)
        return None

    def run_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[str, BindPod]:
        """The Bind plugin that takes the pod, and the instruction that binds it.

        Raises:
            PluginFailed: A plugin raised, or none takes the pod.
        """
        return binding_run.run_bind_plugins(self._bind, state, pod, node_name)

    def nomination_problems(self, nominated: Nominations, snapshot: Snapshot) -> Iterator[str]:
        """Where the columns of nominated pods differ from the nominations; for invariants."""
        return self._nominated.problems(nominated, snapshot)

    def _row_filter(self, state: CycleState, pod: PodInfo) -> RowFilter:
        return RowFilter(self._filters.active(state).all, state, pod)

    def run_post_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Tell the plugins that the pod was bound.

        Raises:
            PluginFailed: A plugin raised; the others have been told all the same.
        """
        run = self._timed(state, "PostBind", binding_run.run_post_bind_plugins)
        run(self._post_bind, state, pod, node_name)

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
