"""The binding cycle: a pod's way from assumed to bound, or back to the queue.

Purpose. `steps` run the plugins of one extension point each. `state_machine` says which step
follows which event. `failure` takes a pod back that is not bound. `event_handlers` translate
events, timeouts and changes of storage objects into events of the state machine.

Invariants.

- No step waits. A step that takes time is an instruction, and its outcome arrives as an event.
- Up to the end of Permit a plugin can find the pod unschedulable. A later failure is an error, and
  the pod is retried after a backoff.

Callers. `schedule_one` starts binding cycles, `preemption` cancels those of victims, and the engine
passes events and the time.

Rejected. One asyncio task per pod: state in a stack frame can be neither inspected nor replayed.
"""
