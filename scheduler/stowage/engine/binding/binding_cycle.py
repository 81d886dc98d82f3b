"""One pod's binding cycle: Reserve, Permit, PreBind, Bind, PostBind, step by step."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from enum import Enum
from itertools import takewhile
from typing import Any, TypeAlias

import msgspec

from stowage.api.config.extenders import BindingExtender
from stowage.api.instructions import BindByExtender, BindPod, Instruction, PodReference, RunPreBind
from stowage.api.status import Code, Status
from stowage.framework.cycle_state import CycleState
from stowage.framework.runtime.binding_run import StagedPreBind
from stowage.framework.runtime.framework import Framework
from stowage.queue.queued_pod import QueuedPod
from stowage.state.pods.pod_info import PodInfo


class BindingPhase(Enum):
    """Where a pod is on its way from assumed to bound; RESERVING lasts no longer than a call."""

    RESERVING = "reserving"
    WAITING_ON_PERMIT = "waiting on permit"
    PRE_BINDING = "pre-binding"
    BINDING = "binding"


class BindingCycle(msgspec.Struct):
    """A pod that has a node and is not bound to it yet.

    Attributes:
        queued: The pod as the queue handed it out.
        info: The pod as last seen; an update may have arrived since.
        left_pending: Whether the watch of pending pods has reported it gone. After the Binding
            was sent that is what success looks like; before, it means the pod was deleted.
        was_deleted: Whether the pod was seen bound and then gone, all before the answer came.
        was_preempted: Whether a preemptor took the pod's place.
        extender: Binds the pod in place of the Bind plugins; None if none does.
        is_reserved: Whether there is something to give back.
        bind_plugin: The Bind plugin that took the pod; empty before that.
        pre_binds: The PreBind plugins that have not had their turn.
        stage: The PreBind in stages that is under way; None if none is.
    """

    queued: QueuedPod
    info: PodInfo
    node_name: str
    framework: Framework
    state: CycleState
    phase: BindingPhase = BindingPhase.RESERVING
    left_pending: bool = False
    was_deleted: bool = False
    was_preempted: bool = False
    extender: BindingExtender | None = None
    is_reserved: bool = False
    bind_plugin: str = ""
    pre_binds: tuple[str, ...] = ()
    stage: StagedPreBind | None = None

    @property
    def reference(self) -> PodReference:
        """Which pod this is about."""
        return self.info.reference

    def reserve(self) -> Step:
        """Reserve and Permit; the end of the scheduling cycle.

        A failed Reserve has given everything back already.
        """
        framework, state, info = self.framework, self.state, self.info
        reserved = framework.run_reserve(state, info, self.node_name)
        if not reserved.is_success:
            return reserved
        self.is_reserved = True
        permit = framework.run_permit(state, info, self.node_name)
        if permit.status.code is not Code.WAIT and not permit.status.is_success:
            return permit.status
        return Proceed([], permit.timeouts)

    def plan(self) -> Step:
        """Find out which PreBind plugins have work to do; the beginning of the binding cycle."""
        self.phase = BindingPhase.WAITING_ON_PERMIT
        plan = self.framework.plan_pre_bind(self.state, self.info, self.node_name)
        self.pre_binds = plan.plugins
        return Proceed([]) if plan.status.is_success else plan.status

    def pre_bind(self) -> Step:
        """Permit is settled: run the PreBind plugins that have work, or bind at once."""
        self.phase = BindingPhase.PRE_BINDING
        return self.next_pre_bind()

    def next_pre_bind(self) -> Step:
        """Run the PreBind plugins whose turn it is: all up to one in stages, or that one."""
        self.stage = None
        if not self.pre_binds:
            return self.bind()
        self.phase = BindingPhase.PRE_BINDING
        first, *rest = self.pre_binds
        self.stage = self._staged(first)
        if self.stage is not None:
            self.pre_binds = tuple(rest)
            return Proceed([self.stage.writes()])
        run = tuple(takewhile(lambda name: self._staged(name) is None, self.pre_binds))
        self.pre_binds = self.pre_binds[len(run) :]
        name = self.framework.scheduler_name
        return Proceed([RunPreBind(self.reference, self.node_name, name, run)])

    def run_pre_bind(self, plugin: str) -> Coroutine[Any, Any, Status] | None:
        """The work of one PreBind plugin for the shell to await; None if it is not the time."""
        if self.phase is not BindingPhase.PRE_BINDING:
            return None
        return self.framework.run_pre_bind(self.state, self.info, self.node_name, (plugin,))

    def bind(self) -> Step:
        """PreBind is done: an extender, or the first Bind plugin that does not skip, binds."""
        instruction: Instruction
        if self.extender is None:
            instruction = self._run_bind()
        else:
            fallback = self._run_bind() if self.extender.is_ignorable else None
            instruction = BindByExtender(
                self.reference, self.node_name, self.extender.index, fallback
            )
        self.phase = BindingPhase.BINDING
        return Proceed([instruction])

    def _staged(self, plugin: str) -> StagedPreBind | None:
        return self.framework.staged_pre_bind(self.state, self.info, self.node_name, plugin)

    def _run_bind(self) -> BindPod:
        self.bind_plugin, bind = self.framework.run_bind(self.state, self.info, self.node_name)
        return bind

    def bound(self) -> None:
        """The API server has bound the pod: tell the PostBind plugins."""
        self.framework.run_post_bind(self.state, self.info, self.node_name)

    def give_back(self) -> None:
        """The pod will not be bound: unreserve, in reverse order, unless that has been done."""
        if self.is_reserved:
            self.is_reserved = False
            self.framework.run_unreserve(self.state, self.info, self.node_name)


class Proceed(msgspec.Struct, frozen=True):
    """The step went well: carry out `instructions`; `waits` are Permit's time limits, if any."""

    instructions: list[Instruction]
    waits: Mapping[str, float] | None = None


#: What a step answers: how to go on, or the status that ends the cycle.
Step: TypeAlias = Proceed | Status
