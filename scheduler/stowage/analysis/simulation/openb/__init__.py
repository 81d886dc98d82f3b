"""The openb experiment: pods that share GPUs arrive at an empty cluster until it is full.

It repeats, with the real engine, the experiment of "Beware of Fragmentation: Scheduling GPU-Sharing
Workloads with Fragmentation Gradient Descent" (USENIX ATC 2023) on its traces: CSV files of nodes
and of pods. The pods of a trace are shuffled, and random ones are repeated or dropped until they
request 130 % of all GPUs. They arrive one at a time. Each is bound at once or has failed for good:
a failed pod is deleted, so the queue retries nothing, and no bound pod ends.

`trace` reads the files, `go_random` has the published program's random numbers, `arrivals` the
order of the pods, `typical_pods` and `fragmentation` the measure of the paper, `objects` the
Kubernetes objects, `policies` the configurations, `experiment` the run and `loads` its results.
"""
