"""The fit error: why a pod is unschedulable, in kube-scheduler's words."""

from __future__ import annotations

from stowage.framework import fit_error_message

__all__ = ["NO_NODES_AVAILABLE", "fit_error_message"]

NO_NODES_AVAILABLE = "no nodes available to schedule pods"
