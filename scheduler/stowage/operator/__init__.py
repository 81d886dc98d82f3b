"""The shell of the scheduler: everything that does I/O, logs, reads the clock or is random.

    Kopf (pending pods) -----+                                      +-> PreBinder, Binder   POST
                             +-> Inbox -> SchedulingLoop/Engine -> Dispatcher -> PodStatusWriter
    Reflectors (all others) -+     ^                                +-> EventRecorder    PATCH, POST
                                   +---- BindSucceeded, BindFailed -+

The root has the entry points (`app`), all parts of a process and their connections (`process`), the
scheduling loop, the inbox, the dispatcher and the leader election. Sub-packages: `client` (requests
to the API server), `watch` and `kopf` (events in), `writers` and `extenders` (instructions out),
`configuration` (the ConfigMap), `serving` (HTTPS endpoints), `metrics`, `tracing`, `logging`.

Invariants:

- Only `SchedulingLoop` changes the engine's state: one call at a time, whose steps may be taken in
  several turns. A step has no ``await``. Others read the state, between two calls if it has to be
  consistent.
- Every event goes through the inbox, every instruction through the dispatcher.
- Scheduling begins after the engine has handled all first lists, and only with the lease. A new
  leader first lists nodes, assigned pods and resource claims again (`CacheSync`). `GatedClient`
  checks the lease immediately before each write.
- A lost answer is not a failure: the writer reads the object back until the outcome is known.
- Bindings never wait for requests of another kind: each kind has its own worker pool.
- Events that only confirm the scheduler's own bindings wait a moment for others (`Inbox`); every
  decision is made after all events that have arrived.
- The generated client models of the ``kubernetes`` package are on no hot path: msgspec decodes
  bytes into structs and encodes dicts into bytes.

`observer` is apart from all that: it records what the reflectors see, beside any scheduler.

Callers: `stowage.cli` and tests. The simulated cluster's commands use `client`, and the benchmarks
measure single parts.

Rejected: ``kopf.operator()``, which ends by cancelling every task younger than itself; Kopf for all
kinds (23 KiB and 0.3 ms per object); a task per request (22 µs against 2 µs with a worker pool).
"""
