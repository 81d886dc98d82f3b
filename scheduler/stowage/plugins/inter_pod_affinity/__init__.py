"""InterPodAffinity: pods near to, or away from, other pods within a topology domain.

What v1.36 counts anew per pod over all nodes and pods, the pod index keeps counted: how many
placed pods match a (selector, namespaces) pair, and how many carry a given term, per node and
per domain. A cycle therefore costs one pass over the domains and one table lookup over the nodes
per term involved, however many pods there are.

Invariants:

- One side's namespace selector is not the other's: the incoming pod's is unrolled over the
  namespaces that exist, a placed pod's is asked about the labels of the incoming pod's namespace,
  which count as empty if it does not exist. An empty selector means every namespace on both.
- Required affinity is about single pods that match all terms at once; anti-affinity about any
  term for itself.
- ``matchLabelKeys`` and ``mismatchLabelKeys`` are merged into the selector by the API server
  when the pod is created; as upstream, they are not looked at here.
- Filter answers for the snapshot of the nodes it is given, also if that is a what-if snapshot
  other than PreFilter's; whether it is skipped is PreFilter's decision alone.

Rejected: an own shortcut for ``kubernetes.io/hostname``. Its domains are counted like any other
key's, so two nodes that wrongly share a hostname are one domain, as in v1.36.
"""

from stowage.plugins.inter_pod_affinity.args import InterPodAffinityArgs
from stowage.plugins.inter_pod_affinity.plugin import InterPodAffinity

__all__ = ["InterPodAffinity", "InterPodAffinityArgs"]
