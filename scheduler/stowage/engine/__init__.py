"""The engine: cluster cache, scheduling queue, scheduling and binding cycles, without I/O.

Purpose. `Engine.handle` takes events, `Engine.schedule` attempts pods. Both return instructions for
the shell, whose outcomes come back as events. The same calls with the same broken ties return the
same instructions, so tests and simulations can replay a recorded run (`journal`).

Start reading at `schedule_one`: it lists the steps of one attempt with the functions that do them.

    engine                       dispatches events to handlers, and the time to timeouts
      event_handlers, ...        update cache and queue, and move waiting pods
      schedule_one               one attempt of one pod
        pod_groups/              one attempt of a pod group: all of its members or none
        scheduling_cycle         choose a node, assume, reserve, permit
        scheduling/              the algorithm: one pod and one snapshot in, one decision out
        extenders/               questions to extenders, and their answers
        preemption/              evictions, and the gate of the preemptor
        binding/                 the state machine from assumed to bound
        scheduling_failure       back to the queue
        released_nominations     others may take a place that a nominated pod leaves
      state/                     what the engine knows besides cache and queue

Callers. The shell, one call at a time. Nothing here is safe for two threads. An event that moves
many pods may take seconds, and so may the attempt of a pod group: `Engine.handling_steps` and
`Engine.scheduling_steps` let the shell do other work between two steps.

Invariants between calls (`Engine.validate`).

- A pod is in one place: it waits in the queue, waits for extenders, is being bound, or is placed.
- A pod in flight waits for Permit plugins or for extenders. After Permit no plugin can reject the
  pod any more, so the queue keeps no events for it.
- A pod that is being bound is assumed on its node in the cache.
- A preemption in progress waits for an answer, or for its last victim to leave.
- What cache and queue keep up incrementally equals a count from scratch.

Decisions.

- A lost answer is not a failure. The dispatcher reports a binding as failed only if the API server
  is known not to have made it, so a pod that may be bound is never forgotten. A bound pod that no
  watch has shown is read back after a while (`ReadPod`).
- A pod whose claims are not bound yet waits in the state machine, not in a task. The writes are an
  instruction (`BindVolumes`), the watches show the outcome, and the timeout is a deadline.
- Reserve plugins do not change the cluster's state. They return a plan; the engine applies it, and
  takes it back if the pod is not bound.
- A new configuration arrives as an event (`ConfigurationChanged`) and holds from the next cycle on.
  Queue and cache stay, frameworks are new, and a binding cycle keeps its framework.

Rejected. An expiry of assumed pods frees resources that are in use. A task per pod has a state that
cannot be replayed. Callbacks into the shell cannot be compared in tests; instructions can.
"""

from stowage.engine.assembly import make_engine
from stowage.engine.engine import Engine
from stowage.engine.journal import (
    CallRecorder,
    IncompleteJournal,
    Journal,
    Replay,
    ReplayDiverged,
    replay,
)
from stowage.engine.settings import Configure, EngineSettings

__all__ = [
    "CallRecorder",
    "Configure",
    "Engine",
    "EngineSettings",
    "IncompleteJournal",
    "Journal",
    "Replay",
    "ReplayDiverged",
    "make_engine",
    "replay",
]
