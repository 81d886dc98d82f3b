"""The machine: cache, queue, cycle and bindings under one roof, without I/O.

Purpose. `Engine.handle` takes in events, `Engine.schedule` tries pods; both answer with
instructions for the shell, whose outcomes come back as events. Given the same calls and the same
broken ties, the answers are the same, so a journal of calls reaches any state again.

Who may call it. The shell, one call at a time; nothing here is safe for two threads, and nothing
needs to be.

What always holds between calls (`Engine.validate`):

- a pod is in one place: waiting, with the extenders, being bound, or placed;
- a pod popped from the queue waits at Permit or for extenders, and only such pods are in flight:
  after Permit nothing can find a pod unschedulable any more, so no events are kept for it;
- a pod being bound is assumed on its node in the cache;
- evictions under way wait for an answer;
- what the cache keeps up incrementally equals a count from scratch.

A lost answer is not a failure. The dispatcher reports a binding as failed only when the API
server is known not to have made it, so a pod is never forgotten while it may be bound. A pod that
was bound and that no watch has shown is read back after a while (`ReadPod`).

A pod whose claims are not bound yet waits in the machine, not in a task: what was decided about its
volumes is an instruction (`BindVolumes`), what became of it is seen in the storage objects that the
watches show, and the time limit is a deadline like any other. So it is in the journal too.

Another configuration arrives as an event (`ConfigurationChanged`) and holds from the next cycle on:
queue and cache stay, frameworks are new, a pod being bound ends under the framework it began with.
As an event it is in the journal, and a replay changes configurations where the engine did.

Preemption is decided in the cycle and carried out here (`preemptions`): victims are evicted by
instruction, the last one last, and the pod they go for is gated meanwhile. Nothing of that has to
survive the process: the nomination and the victims' condition are in the API server.

Rejected: an expiry of assumed pods (it frees room that is taken), a task per pod (its state could
not be replayed), and callbacks into the shell (an instruction can be tested by equality).
"""

from stowage.engine.assembly import make_engine
from stowage.engine.engine import Engine
from stowage.engine.journal import IncompleteJournal, Journal, ReplayDiverged, replay
from stowage.engine.settings import Configure, EngineSettings

__all__ = [
    "Configure",
    "Engine",
    "EngineSettings",
    "IncompleteJournal",
    "Journal",
    "ReplayDiverged",
    "make_engine",
    "replay",
]
