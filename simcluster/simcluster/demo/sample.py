"""The sample manifests: ordinary Kubernetes YAML, shipped with the package."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from importlib import resources
from pathlib import Path

import yaml

from simcluster.values import Json

EXPECT_ANNOTATION = "stowage.demo/expect"
PENDING = "pending"
SCHEDULER_NAME = "stowage"


def sample_objects() -> list[Json]:
    """All objects of the sample manifests, in the order of the file names."""
    return [obj for text in _texts() for obj in yaml.safe_load_all(text) if obj]


def gpu_node_file() -> AbstractContextManager[Path]:
    """The node file of the nodes with devices, while the context is open."""
    return resources.as_file(resources.files("simcluster.demo").joinpath("gpu-nodes.yaml"))


def expected_pods(objects: list[Json]) -> int:
    """The number of pods, including those that controllers create."""
    return sum(_num_pods(obj) for obj in objects)


def is_meant_to_stay_pending(annotations: dict[str, str]) -> bool:
    """Whether a pod is annotated as one that fits no node."""
    return annotations.get(EXPECT_ANNOTATION) == PENDING


def _texts() -> Iterator[str]:
    folder = resources.files("simcluster.demo").joinpath("manifests")
    for file in sorted(folder.iterdir(), key=lambda each: each.name):
        if file.name.endswith(".yaml"):
            yield file.read_text(encoding="utf-8")


def _num_pods(obj: Json) -> int:
    spec = obj.get("spec", {})
    if obj["kind"] in ("Deployment", "StatefulSet"):
        return int(spec.get("replicas", 1))
    if obj["kind"] == "Job":
        return int(spec.get("completions", 1))
    return 1 if obj["kind"] == "Pod" else 0
