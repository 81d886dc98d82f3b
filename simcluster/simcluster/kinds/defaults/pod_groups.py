"""Defaults of pod groups and of the templates of Workloads."""

from simcluster.kinds.defaults.filling import Table

_MODE = {"disruptionMode": "Pod"}
POD_GROUP_TABLES: dict[str, Table] = {
    "podgroups.scheduling.k8s.io": {"spec": _MODE, "status": {}},
    "workloads.scheduling.k8s.io": {"spec": {"podGroupTemplates[]": _MODE}},
}
