"""Writers carry out the engine's instructions at the API server; each handles one kind.

`Binder` posts Bindings, `PreBinder` runs PreBind plugins, `VolumeWriter` writes volumes and claims,
`Evictor` evicts the victims of preemption, `PodStatusWriter` patches conditions and nominations,
`EventRecorder` writes Events, `PodReader` reads pods back. The dispatcher runs them in a
`WorkerPool` each, and puts their outcomes into the inbox.

Invariants:

- A writer checks ``may_write`` before it prepares a request; `GatedClient` checks it again before
  the request is sent.
- A binding, a volume write and an eviction always produce an outcome. If the answer to a write is
  lost, the writer reads the object back until it knows the outcome.
- Every write carries the UID of its object as a precondition, so it never affects another object
  of the same name, and repeating it does no harm.

Only the dispatcher and the extenders' dispatcher call it.

Rejected: one task per request (22 µs against 2 µs for a job of a pool).
"""
