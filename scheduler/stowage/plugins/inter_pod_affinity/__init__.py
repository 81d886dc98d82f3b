"""Plugin InterPodAffinity: places pods near to, or away from, other pods in a topology domain.

v1.36 counts pods over all nodes for each pod it schedules. Here the pod index keeps counts up to
date: the placed pods that match a (selector, namespaces) pair, and the placed pods that have a
given term, per node and per domain. A cycle costs one pass over the domains and one table lookup
over the nodes per term, however many pods there are.

Invariants:

- The namespace selector of the incoming pod is resolved to the namespaces that exist. That of a
  placed pod is matched against the labels of the incoming pod's namespace, which count as empty if
  the namespace does not exist. An empty selector means every namespace in both cases.
- Required affinity needs a single pod that matches all terms; anti-affinity applies per term.
- The API server merges ``matchLabelKeys`` and ``mismatchLabelKeys`` into the selector when a pod is
  created; as upstream, the plugin does not read them.
- Filter answers for the snapshot of the nodes it is given, which may be another what-if snapshot
  than that of PreFilter. PreFilter alone decides whether Filter is skipped.

Rejected: a shortcut for ``kubernetes.io/hostname``. Its domains are counted like those of any other
key, so two nodes that wrongly share a hostname are one domain, as in v1.36.
"""

from stowage.plugins.inter_pod_affinity.args import InterPodAffinityArgs
from stowage.plugins.inter_pod_affinity.plugin import InterPodAffinity
from stowage.plugins.inter_pod_affinity.priority import InterPodAffinityPriority

__all__ = ["InterPodAffinity", "InterPodAffinityArgs", "InterPodAffinityPriority"]
