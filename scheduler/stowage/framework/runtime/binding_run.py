"""Runs Reserve, Permit, PreBind, Bind and PostBind plugins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from stowage.api.events import ClaimsWritten, VolumesWritten
from stowage.api.instructions import BindClaims, BindPod, BindVolumes
from stowage.api.status import SUCCESS, Code, Status, error
from stowage.framework.cycle_state import CycleState
from stowage.framework.extension_points import (
    BindPlugin,
    PermitPlugin,
    PostBindPlugin,
    PreBindPlugin,
    PreBindProgress,
    ReservePlan,
    ReservePlugin,
    StagedPreBindPlugin,
)
from stowage.framework.failure import PluginFailed, failed
from stowage.framework.timings import timed_plugin
from stowage.state.pods.pod_info import PodInfo
from stowage.state.snapshot import Snapshot

#: The longest time a Permit plugin can make a pod wait.
MAX_PERMIT_WAIT_S = 15 * 60.0


class ReserveOutcome(msgspec.Struct, frozen=True):
    """The result of all Reserve plugins: a status, and the plans by plugin."""

    status: Status = SUCCESS
    plans: Mapping[str, ReservePlan] = msgspec.field(default_factory=dict)


class PermitOutcome(msgspec.Struct, frozen=True):
    """The result of all Permit plugins: a status, and the timeouts in seconds."""

    status: Status = SUCCESS
    timeouts: Mapping[str, float] = msgspec.field(default_factory=dict)


class PreBindPlan(msgspec.Struct, frozen=True):
    """The PreBind plugins that have work to do for a pod, or the error that ends its cycle."""

    status: Status = SUCCESS
    plugins: tuple[str, ...] = ()


_SUCCESS = Code.SUCCESS
_RESERVED = ReserveOutcome()
_PERMITTED = PermitOutcome()
_NOTHING_TO_DO = PreBindPlan()


def run_reserve_plugins(
    plugins: Sequence[ReservePlugin], state: CycleState, pod: PodInfo, node_name: str
) -> ReserveOutcome:
    """Run Reserve of all plugins; after the first failure run Unreserve of all plugins."""
    plans: dict[str, ReservePlan] = {}
    for plugin in plugins:
        answer = _reserve(plugin, state, pod, node_name)
        if isinstance(answer, ReservePlan):
            plans[plugin.name] = answer
        elif answer.code is not _SUCCESS:
            return ReserveOutcome(_unreserve_after(plugins, state, pod, node_name, answer))
    return ReserveOutcome(plans=plans) if plans else _RESERVED


def reserve_failed(plugin: str, problem: Exception | Status) -> PluginFailed:
    """The failure of a Reserve plugin, or of applying its plan."""
    return failed(f'running Reserve plugin "{plugin}"', plugin, problem)


def run_unreserve_plugins(
    plugins: Sequence[ReservePlugin], state: CycleState, pod: PodInfo, node_name: str
) -> None:
    """Run Unreserve of all plugins in reverse order, also of those whose Reserve did not run.

    Raises:
        PluginFailed: A plugin raised; the others have run.
    """
    failure: PluginFailed | None = None
    for plugin in reversed(plugins):
        ask = timed_plugin(state.timings, plugin.name, "Unreserve", plugin.unreserve)
        try:
            ask(state, pod, node_name)
        except Exception as problem:
            failure = failed(f'running Unreserve plugin "{plugin.name}"', plugin.name, problem)
    if failure is not None:
        raise failure


def run_permit_plugins(
    plugins: Sequence[PermitPlugin], state: CycleState, pod: PodInfo, node_name: str
) -> PermitOutcome:
    """Run Permit of all plugins up to the first that rejects the pod or fails."""
    timeouts: dict[str, float] = {}
    reasons: list[str] = []
    for plugin in plugins:
        doing = f'running Permit plugin "{plugin.name}"'
        ask = timed_plugin(state.timings, plugin.name, "Permit", plugin.permit)
        try:
            status, timeout_s = ask(state, pod, node_name)
        except Exception as problem:
            return PermitOutcome(failed(doing, plugin.name, problem).status)
        code = status.code
        if code is _SUCCESS:
            continue
        if code is Code.WAIT:
            timeouts[plugin.name] = min(timeout_s, MAX_PERMIT_WAIT_S)
            reasons += status.reasons
        elif status.is_rejected:
            return PermitOutcome(status.by(plugin.name))
        else:
            return PermitOutcome(failed(doing, plugin.name, status).status)
    if not timeouts:
        return _PERMITTED
    text = "one or more plugins asked to wait and no plugin rejected pod"
    return PermitOutcome(Status(Code.WAIT, (*reasons, text)), timeouts)


def plan_pre_bind(
    plugins: Sequence[PreBindPlugin | StagedPreBindPlugin],
    state: CycleState,
    pod: PodInfo,
    node_name: str,
) -> PreBindPlan:
    """Run PreBindPreFlight: ask all PreBind plugins whether they have work to do."""
    working = []
    for plugin in plugins:
        doing = f'running PreBindPreFlight "{plugin.name}"'
        ask = timed_plugin(
            state.timings, plugin.name, "PreBindPreFlight", plugin.pre_bind_pre_flight
        )
        try:
            status = ask(state, pod, node_name)
        except Exception as problem:
            return PreBindPlan(failed(doing, plugin.name, problem).status)
        if status.code is _SUCCESS:
            working.append(plugin.name)
        elif status.code is Code.ERROR:
            return PreBindPlan(failed(doing, plugin.name, status).status)
        elif not status.is_skip:
            text = (
                f'PreBindPreFlight {plugin.name} returned "{status.code.title}", which is '
                "unsupported. It is supposed to return Success, Skip, or Error status"
            )
            return PreBindPlan(error(text, plugin=plugin.name))
    return PreBindPlan(plugins=tuple(working)) if working else _NOTHING_TO_DO


async def run_pre_bind_plugins(
    plugins: Sequence[PreBindPlugin], state: CycleState, pod: PodInfo, node_name: str
) -> Status:
    """Run PreBind of the plugins one after the other until one does not succeed."""
    for plugin in plugins:
        doing = f'running PreBind plugin "{plugin.name}"'
        try:
            status = await _pre_bind(plugin, state, pod, node_name)
        except Exception as problem:
            return failed(doing, plugin.name, problem).status
        if status.is_rejected:
            return status.by(plugin.name)
        if not status.is_success:
            return failed(doing, plugin.name, status).status
    return SUCCESS


class StagedPreBind:
    """The PreBind of one plugin for one pod as writes and a wait for their effect.

    Args:
        plugin: The plugin.
        state: The state of the pod's cycle.
        pod: The pod.
        node_name: The pod's node.
    """

    def __init__(
        self, plugin: StagedPreBindPlugin, state: CycleState, pod: PodInfo, node_name: str
    ) -> None:
        self.timeout_s = plugin.pre_bind_timeout_s
        self._plugin = plugin
        self._state = state
        self._pod = pod
        self._node_name = node_name
        self._doing = f'running PreBind plugin "{plugin.name}"'

    def writes(self) -> BindVolumes | BindClaims:
        """The instruction with the writes.

        Raises:
            PluginFailed: The plugin raised.
        """
        try:
            return self._plugin.pre_bind_writes(self._state, self._pod, self._node_name)
        except Exception as problem:
            raise failed(self._doing, self._plugin.name, problem) from problem

    def written(self, outcome: VolumesWritten | ClaimsWritten) -> None:
        """The shell has made the writes, or some of them before one failed.

        Raises:
            PluginFailed: A write failed, or the plugin raised.
        """
        try:
            self._plugin.pre_bind_written(self._state, outcome)
        except Exception as problem:
            raise failed(self._doing, self._plugin.name, problem) from problem
        if outcome.error:
            raise failed(self._doing, self._plugin.name, error(outcome.error))

    def progress(self, snapshot: Snapshot) -> PreBindProgress:
        """Whether the writes have taken effect; a failure names the plugin."""
        ask = self._plugin.pre_bind_progress
        try:
            progress = ask(self._state, self._pod, self._node_name, snapshot)
        except Exception as problem:
            return PreBindProgress(failed(self._doing, self._plugin.name, problem).status)
        status = progress.status
        if status.is_success or status.code is Code.WAIT:
            return progress
        if status.is_rejected:
            return PreBindProgress(status.by(self._plugin.name))
        return PreBindProgress(failed(self._doing, self._plugin.name, status).status)

    def timed_out(self, snapshot: Snapshot) -> Status:
        """The error after the timeout, in kube-scheduler's words."""
        try:
            text = self._plugin.pre_bind_timed_out(self._state, self._pod, snapshot)
        except Exception as problem:
            return failed(self._doing, self._plugin.name, problem).status
        return failed(self._doing, self._plugin.name, error(text)).status


def run_bind_plugins(
    plugins: Sequence[BindPlugin], state: CycleState, pod: PodInfo, node_name: str
) -> tuple[str, BindPod]:
    """The name and the instruction of the first Bind plugin that does not skip the pod.

    Raises:
        PluginFailed: A plugin raised, or all plugins skip the pod.
    """
    for plugin in plugins:
        try:
            instruction = plugin.bind(state, pod, node_name)
        except Exception as problem:
            raise failed(f'running Bind plugin "{plugin.name}"', plugin.name, problem) from problem
        if instruction is not None:
            return plugin.name, instruction
    raise PluginFailed(error("no bind plugin takes the pod"))


def run_post_bind_plugins(
    plugins: Sequence[PostBindPlugin], state: CycleState, pod: PodInfo, node_name: str
) -> None:
    """Run PostBind of all plugins.

    Raises:
        PluginFailed: A plugin raised; the others have run.
    """
    failure: PluginFailed | None = None
    for plugin in plugins:
        ask = timed_plugin(state.timings, plugin.name, "PostBind", plugin.post_bind)
        try:
            ask(state, pod, node_name)
        except Exception as problem:
            failure = failed(f'running PostBind plugin "{plugin.name}"', plugin.name, problem)
    if failure is not None:
        raise failure


def _unreserve_after(
    plugins: Sequence[ReservePlugin],
    state: CycleState,
    pod: PodInfo,
    node_name: str,
    status: Status,
) -> Status:
    """Run Unreserve after a failure; the result has the reasons of both."""
    try:
        run_unreserve_plugins(plugins, state, pod, node_name)
    except PluginFailed as failure:
        return Status(Code.ERROR, (*status.reasons, *failure.status.reasons), status.plugin)
    return status


async def _pre_bind(
    plugin: PreBindPlugin, state: CycleState, pod: PodInfo, node_name: str
) -> Status:
    if state.timings is None:
        return await plugin.pre_bind(state, pod, node_name)
    with state.timings.plugin_stopwatch(plugin.name, "PreBind") as stopwatch:
        status = await plugin.pre_bind(state, pod, node_name)
        stopwatch.code = status.code
        return status


def _reserve(
    plugin: ReservePlugin, state: CycleState, pod: PodInfo, node_name: str
) -> ReservePlan | Status:
    ask = timed_plugin(state.timings, plugin.name, "Reserve", plugin.reserve)
    try:
        answer = ask(state, pod, node_name)
    except Exception as problem:
        return reserve_failed(plugin.name, problem).status
    if answer is None:
        return SUCCESS
    if isinstance(answer, ReservePlan) or answer.code is _SUCCESS:
        return answer
    if answer.is_rejected:
        return answer.by(plugin.name)
    return reserve_failed(plugin.name, answer).status
