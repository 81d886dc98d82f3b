"""What the engine remembers between calls, besides the cluster cache and the scheduling queue.

Each module holds one object that keeps its own data consistent: the bindings in progress with
their waits, the preemptions in progress, the consultations of extenders, the pod statuses that the
API server holds, error counts, and the instructions of the call in progress. `EngineState` holds
them together. The modules decide nothing; `schedule_one` and the event handlers do.
"""
