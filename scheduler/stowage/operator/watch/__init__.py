"""Reflectors list and watch the cluster's objects and turn them into events for the engine.

One `Reflector` follows each of `REFLECTED_KINDS`: nodes, assigned pods, namespaces, workloads,
disruption budgets, storage objects, devices and their claims. `PodGroupWatch` has one for each kind
of pod group that the API server serves, `CustomResourceWatch` for each resource that a plugin
registered. Kopf watches the pending pods instead; `PendingPods` turns its lists and watch
events into events. All put their events into the inbox. `CacheSync` says when the engine has
handled enough of them to schedule.

Invariants:

- Every object that disappears while no watch is open is reported as gone by the next list.
- A list that is older than what was seen before is not used: it would free the room of pods that
  were bound in the meantime.
- A damaged object is reported (`ObjectInvalid`) and affects no other object.

Callers: `process` and the Kopf watch of pending pods, for a scheduler; `observer` and
`cluster_watch`, which follow a cluster beside its scheduler.

Rejected: Kopf for all kinds (23 KiB and 0.3 ms per object), and one task per object.
"""
