"""Pod groups: their members are decided together, and bound together or not at all.

Purpose. When a member is popped, its whole group is. `members` takes it from the queue, `placing`
tries its members one after the other, `placements` repeats that for the topology domains that may
be the best ones (`topology` finds them, `placement_order` orders them), `group_preemption` for a
cluster without victims, and `commitment` binds them or puts them back. `group_cycle` lists these
steps.

Invariants.

- A try assumes its members in the cache for real and reserves for them, so each member sees those
  before it in every respect: resources, ports, volumes, devices, (anti-)affinity. A try is either
  carried out as it is or taken back as a whole, all within one call of ``Engine.schedule``.
- Between two calls, either enough members of a gang are assumed or bound, or those that are assumed
  wait at Permit and time out.
- Nothing is evicted for a group that does not fit even then.
- A group that does not fit is tried again after an event that may help one of its members, never
  before its backoff is over.

Callers. `schedule_one`, and the event handlers, which release gated members (`quorum`).

Groups whose pods need extenders are not tried together, since an answer takes a round trip for each
member: their pods are scheduled one by one and wait for each other at Permit.

Rejected. A what-if of the cluster for the try: it would have to repeat everything that the cache
counts. kube-scheduler v1.36 assumes members in its snapshot and misses what plugins keep beside it,
such as the anti-affinity of an earlier member.
"""
