"""GPU sharing for Stowage: whole GPUs and fractions of one, chosen by the scheduler.

A node offers ``gpushare.example.com/gpu-milli``: a thousand for each of its GPUs. A pod requests
fewer than a thousand of one GPU, or whole thousands of as many GPUs. The plugins keep what is free
of each GPU of each node in columns of their own, reject nodes without enough GPUs that are free
enough, and note the chosen GPUs in the pod's annotation ``reserved.stowage/gpus``.

`devices` has the columns and `sharing` what all policies have in common: Filter and Reserve. A
policy adds Score; FGD and Random also choose the GPU within a node differently. The policies are
those of "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient
Descent" (USENIX ATC 2023). A profile enables one of them.
"""
