"""What-ifs: the cluster as it would be with pods added or removed; nothing has to be undone.

Purpose. Preemption and nominated pods ask whether a pod fits on a node with other pods on it.

Two forms. `RowWhatIf` is fast: many nodes at once, each as if it alone changed. `WhatIfSnapshot` is
slow and complete: the whole cluster with other pods on one node, for plugins that cannot evaluate
the first form.

Invariants. A what-if never changes the live state. It is valid as long as its snapshot is current.

Rejected. Removing pods from the live state and adding them back, as ``AddPod`` and ``RemovePod`` of
PreFilterExtensions do: an exception in between would corrupt the state.
"""
