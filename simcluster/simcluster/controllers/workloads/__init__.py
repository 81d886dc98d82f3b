"""Workload controllers: Deployment, ReplicaSet, StatefulSet, DaemonSet, Job."""
