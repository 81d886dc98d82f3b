"""Manifests that a person types have their errors by line."""

from __future__ import annotations

import pytest

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.console.answers.manifests import MAX_CHARACTERS, check_manifests, manifest_items

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 3
  template:
    spec:
      containers:
      - name: c
        resources:
          requests:
            cpu: {cpu}
"""
POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: x
spec:
  containers:
  - name: c
    resources: {requests: {cpu: 1}}
"""


def errors_of(text: str) -> list[tuple[int, str]]:
    return [(each.line, each.field) for each in check_manifests(text, ClusterObjects()).errors]


def test_objects_are_listed_with_their_lines_and_pods() -> None:
    text = f"{DEPLOYMENT.format(cpu=1)}---\n{POD}"
    check = check_manifests(text, ClusterObjects())
    found = [(each.kind, each.name, each.pods, each.line) for each in check.objects]
    assert found == [("Deployment", "web", 3, 1), ("Pod", "x", 1, 15)]
    assert not check.errors
    assert [each["kind"] for each in manifest_items(text)] == ["Deployment", "Pod"]


def test_lists_are_unfolded_with_the_lines_of_their_items() -> None:
    text = "kind: List\nitems:\n- kind: Node\n  metadata: {name: a}\n- kind: Node\n  metadata: {}\n"
    check = check_manifests(text, ClusterObjects())
    assert [(each.name, each.line) for each in check.objects] == [("a", 3)]
    assert [each.line for each in check.errors] == [6]


@pytest.mark.parametrize(
    ("text", "line", "field"),
    [
        ("a: b: c", 1, ""),
        ("kind: Pod\nmetadata: {name: [}\n", 2, ""),
        ("- 1\n- 2\n", 1, ""),
        ("just text", 1, ""),
        ("metadata:\n  name: x\n", 1, "kind"),
        ("kind: Pod\nmetadata:\n  labels: {}\n", 2, "metadata.name"),
        (DEPLOYMENT.format(cpu="abc"), 13, "spec.containers[0].resources.requests[cpu]"),
        (DEPLOYMENT.format(cpu=1).replace("replicas: 3", "replicas: -1"), 6, "spec.replicas"),
        (f"{POD}  priorityClassName: gold\n", 9, "spec.priorityClassName"),
        (DEPLOYMENT.format(cpu=1).replace("3", "1000000000"), 6, "spec.replicas"),
    ],
)
def test_an_error_has_its_line(text: str, line: int, field: str) -> None:
    assert errors_of(text)[0] == (line, field)


def test_every_object_is_checked_though_another_one_is_invalid() -> None:
    text = f"{DEPLOYMENT.format(cpu='abc')}---\n{POD}---\n{POD.replace('name: x', 'nom: x')}"
    check = check_manifests(text, ClusterObjects())
    assert [each.name for each in check.objects] == ["x"]
    assert len(check.errors) == 2


def test_a_pod_may_name_what_the_manifests_create_before_it() -> None:
    gold = "kind: PriorityClass\nmetadata: {name: gold}\nvalue: 5\n"
    text = f"{gold}---\n{POD}  priorityClassName: gold\n"
    assert check_manifests(text, ClusterObjects()).errors == []


def test_empty_documents_are_no_errors() -> None:
    assert check_manifests("---\n# nothing\n---\n", ClusterObjects()).errors == []


def test_a_text_that_is_too_long_is_refused() -> None:
    assert (
        "1,048,576 characters"
        in check_manifests("#" * (MAX_CHARACTERS + 1), ClusterObjects()).errors[0].message
    )


@pytest.mark.parametrize(
    ("changed", "line", "field"),
    [
        (
            DEPLOYMENT.replace("    spec:", "    metadata: x\n    spec:"),
            8,
            "spec.template.metadata",
        ),
        (DEPLOYMENT.replace("cpu: {cpu}", "7"), 12, "spec.containers[0].resources.requests"),
        (f"{DEPLOYMENT.partition('      -')[0]}        7\n", 9, "spec.containers"),
        (POD.replace("spec:", "spec:\n  tolerations: [x]"), 6, "spec.tolerations[0]"),
        (POD.replace("spec:", "spec:\n  priorityClassName: [x]"), 6, "spec.priorityClassName"),
    ],
)
def test_a_field_of_another_shape_is_named(changed: str, line: int, field: str) -> None:
    assert errors_of(changed) == [(line, field)]


def test_items_that_are_null_do_not_count() -> None:
    text = DEPLOYMENT.format(cpu=1).replace("      - name", "      -\n      - name")
    text = text.replace("    spec:", "    spec:\n      tolerations: [null]")
    for kind in ("Deployment", "DaemonSet"):
        assert errors_of(text.replace("Deployment", kind)) == []


@pytest.mark.parametrize("templates", ["7", "[7]", "[{metadata: 7}]", "[{}]"])
def test_claims_of_another_shape_are_refused(templates: str) -> None:
    text = DEPLOYMENT.replace("Deployment", "StatefulSet").format(cpu=1)
    text = text.replace("spec:\n  rep", f"spec:\n  volumeClaimTemplates: {templates}\n  rep")
    found = check_manifests(text, ClusterObjects())
    assert "spec.volumeClaimTemplates" in found.errors[0].message


@pytest.mark.parametrize("text", ["\x1b[2J", "a: &a [*a]", "[" * 50_000])
def test_text_that_is_no_yaml_has_one_error(text: str) -> None:
    (error,) = check_manifests(text, ClusterObjects()).errors
    assert error.message


def test_of_two_lists_of_items_the_last_counts() -> None:
    assert len(check_manifests("items: [1]\nitems: []\n", ClusterObjects()).errors) == 0
