"""Pure questions asked of a cluster: why is a pod where it is, or why is it pending.

Purpose. The answers come from the code that decides: the engine's algorithm runs on a cache that
is filled with the objects of a list, and the answer shows every plugin's verdict and score. As the
algorithm decides as kube-scheduler does, the answers hold for clusters that kube-scheduler
schedules, too.

Some questions are about time: `relived_life` lives through the events of a recording with another
configuration, on a `VirtualCluster` that carries out what the engine decides.

Invariants.

- Nothing here recomputes a verdict or a score; near misses alone compare columns themselves.
- A question leaves the engine as it was.
- No I/O, clocks or randomness.

Callers. The commands and the console, which read the objects and show the answers; `experiments`,
which runs simulations; and the conformance suite.
"""
