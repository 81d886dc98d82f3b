"""Workloads and policies for tests of simulations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.analysis.simulation.synthetic import SyntheticWorkload
from stowage.analysis.simulation.timeline import PolicyChanges
from stowage.analysis.simulation.workload_spec import API_VERSION, KIND, decode_workload
from stowage.api.config.loading import DEFAULT_SCHEDULER_NAME
from stowage.api.events import Event
from stowage.engine import Engine
from tests.support.engines import default_engine


def written_workload(**spec: Any) -> dict[str, Any]:
    """A workload file with a spec."""
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "test"}, "spec": spec}


def synthetic_workload(cluster: ClusterObjects | None = None, **spec: Any) -> SyntheticWorkload:
    """A workload with a spec, on top of a cluster."""
    return SyntheticWorkload(decode_workload(written_workload(**spec)), cluster or ClusterObjects())


def nodes_of(count: int = 2, cpu: str = "4", **fields: Any) -> dict[str, Any]:
    """A group of nodes called ``node``."""
    allocatable = {"cpu": cpu, "memory": "16Gi", "pods": "20"}
    template = {"status": {"allocatable": allocatable}}
    return {"name": "node", "count": count, "template": template, **fields}


def pods_of(name: str = "pod", cpu: str = "1", **fields: Any) -> dict[str, Any]:
    """A group of pods; ``pod_spec`` adds to the spec of the template."""
    added = fields.pop("pod_spec", {})
    container = {"name": "main", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    spec = {"containers": [container], **added}
    return {"name": name, "template": {"spec": spec}, **fields}


class DefaultPolicy:
    """The default profile with more plugins.

    Attributes:
        name: Its name.
        engine: The engine it has made last.
    """

    def __init__(self, *plugins: Any, name: str = "default") -> None:
        self.name = name
        self.engine: Engine
        self._plugins = plugins

    def make_engine(
        self,
        scheduler_names: Iterable[str],
        choose: Callable[[int], int],
        post: Callable[[Event], None],
    ) -> Engine:
        """See `Policy`."""
        profile = {"schedulerName": DEFAULT_SCHEDULER_NAME}
        self.engine = default_engine(choose, profile=profile, plugins=self._plugins)
        return self.engine

    def changes(self, scheduler_names: Iterable[str]) -> Sequence[PolicyChanges]:
        """See `Policy`; it stays as it is."""
        del scheduler_names
        return ()
