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
- an event costs the pods that plugins waiting for it rejected; a pop or an add costs O(log n);
  replaying missed events costs the events since the pop.

The queue knows no plugin and no framework: order, gates and hints are callables. Time is an
argument, so nothing here ever waits; `next_deadline` says when `flush` is due.

Where this differs from kube-scheduler, each pod being requeued no later than there:

- Assigned pods that appear are offered to all pods whose plugins registered for them; there, pods
  without matching affinity terms are left out before their hints are asked.
- A pod update that no plugin can tell from the last version is an ``UPDATE_POD_OTHER``, not every
  kind of update at once.
- Pods that waited five minutes leave at the next half minute of the clock; one that is gated is
  asked again only five minutes later.

Rejected: asking every unschedulable pod at each event (its cost grows with the queue); a linked
list of events with markers (a list with numbers has the same cost and can be counted); a heap
with sift operations in Python (lazy removal from ``heapq`` is several times faster); one mapping
from pod to place besides the queues (a second truth to keep).
"""

from scheduler.queue.event_registrations import Hint, PluginKey, Registrations
from scheduler.queue.heap import KeyedHeap, SortKey
from scheduler.queue.nominator import Nominator
from scheduler.queue.queue_events import event_label, pod_update_events
from scheduler.queue.queued_pod import Place, QueuedPod
from scheduler.queue.rules import QueueRules
from scheduler.queue.scheduling_queue import QueueInconsistentError, SchedulingQueue

__all__ = [
    "Hint",
    "KeyedHeap",
    "Nominator",
    "Place",
    "PluginKey",
    "QueueInconsistentError",
    "QueueRules",
    "QueuedPod",
    "Registrations",
    "SchedulingQueue",
    "SortKey",
    "event_label",
    "pod_update_events",
]
