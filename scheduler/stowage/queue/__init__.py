"""The scheduling queue: which pending pod is scheduled next, and what the others wait for.

Purpose. The queue holds every pending pod of our profiles in one of four states and moves pods
between them when cluster events, timeouts or configuration changes may make them schedulable. It
is ``pkg/scheduler/backend/queue`` of kube-scheduler v1.36.

::

                      add
                       |
                   PreEnqueue
          admits       |          rejects
      +----------------+---------------------+
      v                                      v
    +--------+   event, timeout, or   +---------------+
    | active | <--------------------- | unschedulable |
    |        |   activate             | or gated      |
    +--------+                        +---------------+
      |    ^                            |           ^
      |    | backoff over,   event or   |           | rejected, and no event
      |    | or activate     timeout,   |           | since the pop may help
      |    |                 backoff    |           |
      |    |    +---------+  not over   |           |
      |    +--- | backoff | <-----------+           |
      |         +---------+                         |
      | pop          ^ rejected, and an event       |
      |              | since the pop may help;      |
      v              | or an error                  |
    +-----------+    |                              |
    | in flight | ---+------------------------------+
    +-----------+
      | done
      v
    (not in the queue)

A pop takes a rejected pod from backoff early when no pod is active, unless it is a member of a pod
group. `SchedulingQueue.delete` removes a pod in any state; a pod in flight leaves when its
scheduling attempt ends. PreEnqueue runs on each way into active and backoff, except from backoff to
active; if early pops are switched off, it runs on each way into active only. If a plugin that
answered Pending asks for the pod, the pod skips its backoff.

Caller. Only the engine uses the queue. The queue knows no plugin and no framework: the sort key,
PreEnqueue and queueing hints are callables in `QueueRules`. Time is an argument, in seconds;
`SchedulingQueue.next_deadline` says when `flush` has work.

Invariants, checked by `SchedulingQueue.validate`:

- A pod is in exactly one state.
- No event is lost for a pod. Either the pod is unschedulable and the hints of the plugins that
  rejected it run at once, or it is in flight and they run when its rejection is known.
- The same calls give the same order in every run: no code iterates over a set. Nor does the order
  depend on the order in which a configuration lists its plugins.
- An event costs time in proportion to the groups of pods that the plugins registered for it
  rejected, and to the pods it moves. A pop or an add costs O(log n). A group holds the pods of one
  class that the same plugins reject; a hint that reads only the class runs once per group.

Differences from kube-scheduler (each pod is requeued no later than there):

- Pods that waited five minutes leave at the next half minute of the clock. If PreEnqueue of a
  plugin that registered every event rejects such a pod, the plugin is asked again five minutes
  later.
- A pod that is deleted during its scheduling attempt does not return to the queue.

Rejected designs. Running hints for every unschedulable pod at each event: its cost grows with the
queue. A linked list of in-flight events with markers: a list with numbers costs the same and can
be counted. A heap with sift operations in Python: lazy removal from ``heapq`` is several times
faster. A mapping from pod to state beside the sub-queues: it would be a second truth to maintain.
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
