"""Preemption: evict the victims, and gate the preemptor until they leave.

Purpose. The scheduling algorithm chooses the node and the victims; this package carries it out.
`evictions` evicts the victims, the last one last. `gate` holds the preemptor back meanwhile.

Invariants.

- A preemption in progress waits for at least one answer, or for the watch to show its last victim
  leave.
- A gated preemptor either waits for an eviction or is listed as released, so that an event moves
  it.

Callers. `schedule_one` starts preemptions; the engine passes the answers to evictions.

Nothing here has to survive the process. The nomination and the victims' conditions are at the API
server, and a new process attempts the preemptor again.
"""
