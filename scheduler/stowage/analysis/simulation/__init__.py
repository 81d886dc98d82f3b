"""The engine in virtual time: pods and nodes come and go, and a policy decides about the pods.

Purpose. To compare configurations of the scheduler on the same arrivals. The engine is the one
that runs in production: its queue, backoff, preemption, Permit and reconfiguration are unchanged.
`VirtualCluster` stands for the API server and the kubelets; a heap of events stands for the users,
the controllers and the machines.

Invariants.

- Same workload, policy and seed: same result, in any process. Every purpose (arrivals of one group
  of pods, ties) has a random stream of its own, so every policy meets the same arrivals.
- The scheduler takes no virtual time: it decides as soon as a pod is ready.
- The cost of an event does not grow with the number of nodes. The columns of all nodes are read at
  sample times only, and the number of samples is bounded.
- No I/O, clocks or global randomness.

`result` has the values, `timeline` the input, `run` the function `simulate`.
"""
