"""Scheduler extenders: HTTP client, protocol, and the calls that kube-scheduler makes to them.

`ExtenderDispatcher` carries out the engine's instructions for extenders: `ExtenderEvaluator`
filters and prioritizes nodes, `VictimReviewer` reviews the victims of preemption, `ExtenderBinder`
binds pods. `ExtenderObjects` provides complete pods and nodes; the engine keeps only some fields.

Invariants:

- A slow extender delays only the pods that need it: the engine goes on with other pods and gets the
  answer as an event.
- Every call has a time limit and a maximum length of the answer, and every instruction an outcome.
- Nothing is kept in memory for extenders unless one is configured.

`stowage.operator.process` makes the parts; the dispatcher calls `ExtenderDispatcher`, and the
watches give `ExtenderObjects` what they receive.
"""
