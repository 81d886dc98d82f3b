"""WAITING: who is scheduled next, and who has to wait for what.

A pod that is pending, and not being scheduled, is in one of three queues: active (it only waits
for its turn), backoff (it failed a moment ago), unschedulable (nothing that happened since may
help it, or a gate is closed). A popped pod is in flight until it is done or comes back. The moves
between them are those of ``pkg/scheduler/backend/queue`` of kube-scheduler v1.36; the engine is
the only caller.

Invariants, checked by `SchedulingQueue.validate`:

- each pod is in exactly one place, and leaves it only to another one, by `done` or by `delete`;
- an event is never lost for a pod: either the pod is unschedulable and the plugins that rejected
  it are asked, or it is in flight and they are asked once they are known;
- the same calls give the same order in every run: nothing iterates over a set;
- an event costs the groups of pods that plugins waiting for it rejected, and the pods it moves;
  a pop or an add costs O(log n); replaying missed events costs the events since the pop. A group
  are the pods of one class which the same plugins hold back: where a hint reads only the class,
  one of them is asked about for all.

The queue knows no plugin and no framework: order, gates and hints are callables. Time is an
argument, so nothing here ever waits; `next_deadline` says when `flush` is due.

Where this differs from kube-scheduler, each pod being requeued no later than there:

- Pods that waited five minutes leave at the next half minute of the clock. One whose gate is found
  closed then, by a plugin that waits for every event, is asked again only five minutes later.
- A pod that was deleted while it was being scheduled is not put back to be found gone later.

Rejected: asking every unschedulable pod at each event (its cost grows with the queue); a linked
list of events with markers (a list with numbers has the same cost and can be counted); a heap
with sift operations in Python (lazy removal from ``heapq`` is several times faster); one mapping
from pod to place besides the queues (a second truth to keep).
"""

from stowage.queue.event_registrations import Hint, PluginKey, Registration, Registrations
from stowage.queue.heap import KeyedHeap, SortKey
from stowage.queue.nominator import Nominator
from stowage.queue.queue_events import event_label, pod_update_events
from stowage.queue.queued_pod import QueuedPod, QueueState
from stowage.queue.rules import QueueRules
from stowage.queue.scheduling_queue import QueueInconsistentError, SchedulingQueue

__all__ = [
    "Hint",
    "KeyedHeap",
    "Nominator",
    "PluginKey",
    "QueueInconsistentError",
    "QueueRules",
    "QueueState",
    "QueuedPod",
    "Registration",
    "Registrations",
    "SchedulingQueue",
    "SortKey",
    "event_label",
    "pod_update_events",
]
