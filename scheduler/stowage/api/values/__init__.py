"""Value types: the semantics of fields, equal to kube-scheduler v1.36.

Quantities, selectors, node affinity, tolerations, resources, durations, CSI migration. Values are
immutable; invalid input raises an error that names the value and the expectation.
"""
