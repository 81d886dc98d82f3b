"""A framework whose extension points are timed, for the cycles that are sampled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from stowage.api.status import SKIP, Code, Status
from stowage.framework.cycle_state import CycleState
from stowage.framework.diagnosis import Diagnosis
from stowage.framework.filter_result import FilterResult
from stowage.framework.runtime.binding_run import PermitOutcome, PreBindPlan
from stowage.framework.runtime.framework import Framework
from stowage.framework.runtime.nominated_pods import NO_NOMINATIONS, Nominations
from stowage.framework.runtime.post_filter_run import PostFilterOutcome
from stowage.framework.runtime.pre_filter_run import PreFilterOutcome
from stowage.framework.runtime.score_run import ScoreResult
from stowage.framework.timings import Timings, title_of
from stowage.framework.verdict import Int64Array
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import NodeView, Snapshot

R = TypeVar("R")


class TimedFramework(Framework):
    """Does what another framework does, with all it remembers, and takes the time.

    Bind is not timed here: the request to the API server is made by the shell.

    Args:
        framework: The one to stand for.
        timings: Where durations go.
    """

    def __init__(self, framework: Framework, timings: Timings) -> None:
        # Shared, not copied: an untimed cycle must find the answers a timed one has kept.
        self.__dict__.update(framework.__dict__)
        self._timings = timings

    def run_pre_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> PreFilterOutcome:
        """See `Framework.run_pre_filter`."""
        run = super().run_pre_filter
        return self._timed("PreFilter", lambda: run(state, pod, snapshot), lambda it: it.status)

    def run_filter(
        self,
        state: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
        node_names: frozenset[str] | None = None,
        nominated: Nominations = NO_NOMINATIONS,
    ) -> FilterResult:
        """See `Framework.run_filter`."""
        run = super().run_filter
        return self._timed("Filter", lambda: run(state, pod, snapshot, node_names, nominated))

    def run_post_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, diagnosis: Diagnosis
    ) -> PostFilterOutcome:
        """See `Framework.run_post_filter`."""
        run = super().run_post_filter
        return self._timed(
            "PostFilter", lambda: run(state, pod, snapshot, diagnosis), lambda it: it.status
        )

    def run_pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeView) -> Status:
        """See `Framework.run_pre_score`."""
        run = super().run_pre_score
        return self._timed("PreScore", lambda: run(state, pod, nodes), lambda it: it)

    def run_score(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot, rows: Int64Array
    ) -> ScoreResult:
        """See `Framework.run_score`."""
        run = super().run_score
        return self._timed("Score", lambda: run(state, pod, snapshot, rows))

    def run_reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """See `Framework.run_reserve`."""
        run = super().run_reserve
        return self._timed("Reserve", lambda: run(state, pod, node_name), lambda it: it)

    def run_unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """See `Framework.run_unreserve`."""
        run = super().run_unreserve
        self._timed("Unreserve", lambda: run(state, pod, node_name))

    def run_permit(self, state: CycleState, pod: PodInfo, node_name: str) -> PermitOutcome:
        """See `Framework.run_permit`."""
        run = super().run_permit
        return self._timed("Permit", lambda: run(state, pod, node_name), lambda it: it.status)

    def plan_pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> PreBindPlan:
        """See `Framework.plan_pre_bind`."""
        run = super().plan_pre_bind
        return self._timed("PreBindPreFlight", lambda: run(state, pod, node_name), _plan_status)

    async def run_pre_bind(
        self, state: CycleState, pod: PodInfo, node_name: str, plugins: Sequence[str]
    ) -> Status:
        """See `Framework.run_pre_bind`."""
        started, code = self._timings.timer(), Code.ERROR
        try:
            status = await super().run_pre_bind(state, pod, node_name, plugins)
            code = status.code
            return status
        finally:
            self._observe("PreBind", code, started)

    def run_post_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """See `Framework.run_post_bind`."""
        run = super().run_post_bind
        self._timed("PostBind", lambda: run(state, pod, node_name))

    def _timed(
        self, point: str, run: Callable[[], R], status_of: Callable[[R], Status] | None = None
    ) -> R:
        """Run a point; one that answers with no status succeeded unless it raised."""
        started, code = self._timings.timer(), Code.ERROR
        try:
            answer = run()
            code = Code.SUCCESS if status_of is None else status_of(answer).code
            return answer
        finally:
            self._observe(point, code, started)

    def _observe(self, point: str, code: Code, started: float) -> None:
        duration_s = self._timings.timer() - started
        self._timings.observer.observe_extension_point(
            point, title_of(code), self.scheduler_name, duration_s
        )


def _plan_status(plan: PreBindPlan) -> Status:
    return SKIP if plan.status.is_success and not plan.plugins else plan.status
