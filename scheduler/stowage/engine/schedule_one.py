"""One scheduling attempt of one pod, from the queue to its Binding.

    step                                      function                            where
    1.  take a pod                            next_pod                            here
    1b. a member of a pod group: its group    schedule_pod_group                  pod_groups
    2.  skip a pod that needs no node         skip_pod_schedule                   scheduling_cycle
    2b. find out what none has asked before   preparing_steps                     preparation
    3.  scheduling cycle                      scheduling_cycle                    scheduling_cycle
    3.1 choose a node on a snapshot           scheduling_steps                    scheduling
          filter                              find_nodes_that_fit_pod             scheduling
          filter by extenders                 find_nodes_that_pass_extenders      scheduling
          score                               prioritize_nodes, select_host       scheduling
    3.2 ask extenders; 1. resumes the attempt consult_extenders                   extenders
    3.3 no node: evict victims, requeue       fail_scheduling_cycle               scheduling_cycle
    3.4 assume the pod on the node            assume                              scheduling_cycle
    3.5 reserve                               run_reserve                         binding
    3.6 permit                                run_permit                          binding
    4.  binding cycle: pre-bind, bind         binding_cycle                       binding
    failure after 3.4: unreserve, forget      fail_binding_cycle                  binding
    every failure: requeue, tell the owner    handle_scheduling_failure           scheduling_failure

The steps are those of kube-scheduler's ``schedule_one.go``, under its names. Two things differ. The
scheduling cycle does not wait for extenders: it ends with a question, and is repeated with the
answer. The binding cycle does not wait in a goroutine: it is a state machine, and each instruction
to the shell (pre-bind, write volumes, bind) is answered by an event.
"""

from __future__ import annotations

from stowage.api.interruptible import Interruptible
from stowage.engine.binding.state_machine import binding_cycle
from stowage.engine.pod_groups.group_cycle import is_scheduled_as_group, schedule_pod_group
from stowage.engine.preparation import has_to_prepare, preparing_steps
from stowage.engine.scheduling_cycle import scheduling_cycle, skip_pod_schedule
from stowage.engine.state.attempt import Attempt
from stowage.engine.state.engine_state import EngineState


def schedule_one(state: EngineState, now: float) -> Interruptible[bool]:
    """Attempt the next pod; False if no pod is ready. ``ScheduleOne`` of v1.36."""
    # 1. Take the next pod.
    attempt = next_pod(state, now)
    if attempt is None:
        return False
    if attempt.info.group and is_scheduled_as_group(state, attempt):
        yield from schedule_pod_group(state, attempt, now)
        return True
    # 2. Skip it if it needs no node.
    if skip_pod_schedule(state, attempt.info):
        return True
    # 2b. What no pod has asked for before is found out in steps of its own.
    if has_to_prepare(attempt.info):
        yield from preparing_steps(state, attempt.info)
    # 3. Choose a node, assume the pod there, reserve and permit.
    cycle = yield from scheduling_cycle(state, attempt, now)
    # 4. Bind it; all waiting is left to the state machine of the binding cycle.
    if cycle is not None:
        yield from binding_cycle(state, cycle, now)
    return True


def next_pod(state: EngineState, now: float) -> Attempt | None:
    """The pod that extenders have answered about or have capacity for, else the head of the queue.

    Returns:
        None if no pod is ready.
    """
    consultation = state.consultations.take_ready()
    if consultation is not None:
        started = consultation.started if consultation.was_asked else state.timer()
        return Attempt(consultation.queued, consultation.info, started, consultation)
    queued = state.queue.pop(now)
    return None if queued is None else Attempt(queued, queued.info, state.timer())
