"""Pods: equivalence classes, counts per node and topology domain, affinity terms, importance.

Purpose. Inter-pod affinity and topology spreading ask how many pods match a selector on each node
and in each domain; preemption asks for the pods of a node in order of importance. Both must cost
the same per event in a cluster of any size.

Kinds of equality, from the finest to the coarsest:

- `PodInfo`: one version of one pod.
- `PodVariant`: equal class, and equally terminating or not. For sums over removed and added pods.
- `PodClass`: all scheduling-relevant fields equal. For caches of plugin results.
- `LabelGroup`: equal namespace and labels, equally terminating or not. For counts by selector.
- `NamespacedLabels`: equal namespace and labels. For matching with affinity terms and budgets.
- `NodeDemand`: equal requirements on a single node. For results that do not depend on other pods.

Rejected. A list of pods per selector: adding a pod would evaluate every selector again.
"""
