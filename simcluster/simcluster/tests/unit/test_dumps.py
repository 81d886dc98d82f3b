"""Dumps: the formats of kubectl, loading, saving and reading back."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from simcluster.clock import Clock
from simcluster.kinds.resources import DEPLOYMENTS, NAMESPACES, NODES, PODS, REPLICA_SETS
from simcluster.store.dump_reader import DumpError, read_dump
from simcluster.store.loading import load_files
from simcluster.store.registry import Registry
from simcluster.store.saving import everything_in, write_dump
from simcluster.store.store import Store
from simcluster.tests.support.manual_cluster import ManualCluster, workload

Json = dict[str, Any]

STAMP = "2025-01-02T03:04:05Z"


def pod(name: str, revision: int = 7, **spec: Any) -> Json:
    containers = [{"name": "c", "image": "x:1", "args": ["- not an item", "items:"]}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": f"uid-{name}",
            "resourceVersion": str(revision),
            "creationTimestamp": STAMP,
            "annotations": {"text": "first\n- second\nitems:\n---\nlast\n"},
        },
        "spec": {"containers": containers, "nodeName": "n", **spec},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "lastProbeTime": None}]},
    }


def node(name: str = "n") -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "5"},
        "spec": {},
        "status": {
            "allocatable": {"cpu": "1", "memory": "1Gi", "pods": "1"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def listing(*objects: Json) -> Json:
    metadata = {"resourceVersion": ""}
    return {"apiVersion": "v1", "items": list(objects), "kind": "List", "metadata": metadata}


def write(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8")
    return path


def load(*paths: Path, strict: bool = False) -> tuple[Store, list[str]]:
    store = Store()
    registry = Registry(store, Clock(lambda: 0.0))
    return store, load_files(registry, paths, strict=strict).lines()


def test_all_formats_of_a_list_are_read(tmp_path: Path) -> None:
    objects = [node(), pod("a"), pod("b")]
    whole = listing(*objects)
    bare = [{key: inner for key, inner in pod("a").items() if key not in {"kind", "apiVersion"}}]
    typed = {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": bare}
    files = {
        "list.json": json.dumps(whole, indent=4),
        "list.yaml": yaml.safe_dump(whole),
        "indented.yaml": "items:\n"
        + "".join(f"  - {json.dumps(found)}\n" for found in objects)
        + "kind: List\napiVersion: v1\n",
        "documents.yaml": yaml.safe_dump_all(objects, explicit_start=True),
        "lists.yaml": yaml.safe_dump_all([listing(objects[0]), listing(*objects[1:])]),
    }
    for name, content in files.items():
        assert list(read_dump(write(tmp_path / name, content))) == objects, name
    assert list(read_dump(write(tmp_path / "typed.json", json.dumps(typed)))) == [pod("a")]
    assert list(read_dump(write(tmp_path / "one.json", json.dumps(pod("a"))))) == [pod("a")]
    assert list(read_dump(write(tmp_path / "empty.json", ""))) == []


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('{"items": [1]}', r"items\[0\]: Expected `object`, got `int`"),
        ('{"items": ', "Input data was truncated"),
        ("just text", "document 1: str \\(expected a Kubernetes object\\)"),
        ("a: [1", "while parsing a flow sequence"),
    ],
)
def test_a_file_that_is_not_a_dump_is_reported(tmp_path: Path, content: str, problem: str) -> None:
    with pytest.raises(DumpError, match=problem):
        list(read_dump(write(tmp_path / "file", content)))


@pytest.mark.parametrize(
    ("obj", "problem"),
    [
        ({"apiVersion": "v1"}, "no kind or apiVersion"),
        ({"apiVersion": "v1", "kind": "Pod"}, "metadata: None"),
        ({"apiVersion": "v1", "kind": "Pod", "metadata": {"uid": "u"}}, "metadata.name of Pod"),
        ({**pod("a"), "spec": 3}, "spec of Pod a: expected an object"),
        ({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "A"}}, "Node .A. is invalid"),
    ],
)
def test_a_malformed_object_is_reported_with_its_position(
    tmp_path: Path, obj: Json, problem: str
) -> None:
    file = write(tmp_path / "a.json", json.dumps(listing(node(), obj)))
    with pytest.raises(DumpError, match=f"object 2: {problem}"):
        load(file)


def test_objects_are_loaded_unchanged_in_any_order(tmp_path: Path) -> None:
    first = write(tmp_path / "pods.json", json.dumps(listing(pod("a", 41), pod("b", 40))))
    second = write(tmp_path / "nodes.yaml", yaml.safe_dump(node()))
    store, lines = load(first, second)
    kept = pod("a", 41)
    del kept["kind"], kept["apiVersion"]
    stored = store.get(PODS.stored_in, "team", "a")
    assert stored is not None
    assert (stored.obj, stored.revision) == (kept, 41)
    assert store.get(NAMESPACES.stored_in, "", "team") is not None
    assert store.revision == 42  # the namespace that was missing
    assert lines == ["loaded 1 Node, 2 Pod"]


def test_the_newer_of_two_states_of_an_object_is_loaded(tmp_path: Path) -> None:
    old, new = pod("a", 3, priority=1), pod("a", 4, priority=2)
    files = [
        write(tmp_path / f"{index}.json", json.dumps(found))
        for index, found in enumerate((new, old))
    ]
    for order in (files, files[::-1]):
        store, _ = load(*order)
        stored = store.get(PODS.stored_in, "team", "a")
        assert stored is not None
        assert stored.obj["spec"]["priority"] == 2


def test_kinds_that_are_not_served_are_skipped_or_refused(tmp_path: Path) -> None:
    strange = {"apiVersion": "x.example/v1", "kind": "Thing", "metadata": {"name": "t"}}
    file = write(tmp_path / "a.json", json.dumps(listing(strange, node())))
    _, lines = load(file)
    assert lines == [
        "loaded 1 Node",
        "left out 1 of kind Thing (x.example/v1): this cluster does not serve it",
    ]
    with pytest.raises(DumpError, match=r"object 1: Thing of x\.example/v1 is not served"):
        load(file, strict=True)


def test_a_manifest_is_created_with_defaults(tmp_path: Path) -> None:
    manifest = {"apiVersion": "apps/v1", "kind": "Deployment", **workload()}
    store, _ = load(write(tmp_path / "a.yaml", yaml.safe_dump(manifest)))
    stored = store.get(DEPLOYMENTS.stored_in, "default", "web")
    assert stored is not None
    assert stored.obj["spec"]["strategy"]["type"] == "RollingUpdate"


def test_loaded_pods_keep_running_on_nodes_that_are_too_small_or_missing(tmp_path: Path) -> None:
    objects = [node(), pod("a"), pod("b"), pod("c", nodeName="elsewhere")]
    file = write(tmp_path / "a.json", json.dumps(listing(*objects)))
    cluster = ManualCluster(0, binds=False, files=(file,))
    before = cluster.store.revision
    cluster.pass_time(1000)
    assert [found["status"]["phase"] for found in cluster.all(PODS)] == ["Running"] * 3
    assert cluster.store.revision == before
    (warning,) = cluster.report.warnings
    assert warning.startswith("1 pods are bound to 1 nodes that are not in the files, such as else")


def test_saved_objects_are_loaded_unchanged(tmp_path: Path) -> None:
    cluster = ManualCluster()
    cluster.create(DEPLOYMENTS, workload())
    cluster.settle()
    file = tmp_path / "saved.json"
    write_dump(file, everything_in(cluster.registry))
    again = ManualCluster(0, files=(file,))
    again.pass_time(1000)
    for resource in (NODES, PODS, DEPLOYMENTS, REPLICA_SETS, NAMESPACES):
        assert again.all(resource) == cluster.all(resource)
    twice = tmp_path / "twice.json"
    write_dump(twice, everything_in(again.registry))
    assert twice.read_bytes() == file.read_bytes()


def test_a_deployment_loaded_without_its_replica_sets_is_left_unchanged(tmp_path: Path) -> None:
    cluster = ManualCluster()
    cluster.create(DEPLOYMENTS, workload())
    cluster.settle()
    file = tmp_path / "partial.json"
    kept = {NODES, DEPLOYMENTS, PODS}
    write_dump(file, (found for found in everything_in(cluster.registry) if found.resource in kept))
    again = ManualCluster(0, files=(file,))
    again.pass_time(1000)
    assert again.all(REPLICA_SETS) == []
    assert again.all(PODS) == cluster.all(PODS)


def test_a_loaded_rollout_continues(tmp_path: Path) -> None:
    cluster = ManualCluster(binds=False)
    cluster.create(DEPLOYMENTS, workload())
    cluster.settle()
    file = tmp_path / "saved.json"
    write_dump(file, everything_in(cluster.registry))
    again = ManualCluster(0, files=(file,))
    assert again.get(DEPLOYMENTS, "web")["status"]["availableReplicas"] == 3


def test_custom_resources_are_loaded_with_their_definitions(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"size": {"type": "integer", "default": 1}}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    file = write(tmp_path / "a.json", json.dumps(listing(widget, definition)))
    cluster = ManualCluster(0, files=(file,))
    found = cluster.registry.catalog.of_kind("example.com/v1", "Widget")
    assert found is not None
    assert cluster.get(found, "w")["size"] == 1
    saved = tmp_path / "saved.json"
    write_dump(saved, everything_in(cluster.registry))
    assert '"kind":"Widget"' in saved.read_text()


def test_a_device_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        write_dump(full, everything_in(ManualCluster().registry))
    assert full.is_char_device()
