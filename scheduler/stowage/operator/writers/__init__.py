"""Writers carry out the engine's instructions at the API server; each handles one kind.

`Binder` posts Bindings, `PreBinder` runs PreBind plugins, `VolumeWriter` writes volumes and their
claims, `ClaimWriter` allocates and reserves claims for devices, `ClaimReleaser` takes them back,
`Evictor` evicts the victims of preemption, `PodStatusWriter` patches conditions and nominations,
`PodGroupStatusWriter` the condition of pod groups, `EventRecorder` writes Events, `PodReader` reads
pods back. Each has a `WorkerPool`. The dispatcher puts the outcomes into the inbox.

Invariants:

- `GatedClient` checks the lease immediately before a request is sent. Writers that prepare much, or
  try for long, also check ``may_write`` before that.
- A binding, a write of volumes or claims, and an eviction always produce an outcome. If the answer
  to a binding or to such a write is lost, the writer reads the object back until it knows the
  outcome. An eviction is sent again.
- Every change of a pod, a pod group, a volume or a claim has the UID or the resource version of the
  object as a precondition. So it never affects another object of the same name, and repeating it
  does no harm.

The dispatcher and the extenders' dispatcher call the writers of instructions. `ObjectEventRecorder`
writes the Events about the Lease and the ConfigMap for the leader election and the configuration.

Rejected: one task per request (22 µs against 2 µs for a job of a pool).
"""
