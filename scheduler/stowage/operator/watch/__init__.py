"""Reflectors list and watch the cluster's objects and turn them into events for the engine.

One `Reflector` follows each of `REFLECTED_KINDS`: nodes, assigned pods, namespaces, workloads,
storage objects and disruption budgets. `CustomResourceWatch` has one for each resource that a
plugin registered. Kopf watches the pending pods instead; `PendingPods` turns its lists and watch
events into events. All put their events into the inbox. `CacheSync` says when the engine has
handled enough of them to schedule.

Invariants:

- Every object that disappears while no watch is open is reported as gone by the next list.
- A list that is older than what was seen before is not used: it would free the room of pods that
  were bound in the meantime.
- A damaged object is reported (`ObjectInvalid`) and affects no other object.

Only `stowage.operator.app` and the Kopf watches call it.

Rejected: Kopf for all kinds (23 KiB and 0.3 ms per object), and one task per object.
"""
