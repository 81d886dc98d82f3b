"""Merge patch, JSON patch and strategic merge patch."""

import copy
from typing import Any

import pytest

from simcluster.apiserver.errors import ApiError
from simcluster.patch.merge_patch import json_merge, json_patch
from simcluster.patch.strategic_merge import strategic_merge
from simcluster.schema import struct_of

Json = dict[str, Any]


def test_merge_removes_nulls_merges_objects_and_replaces_lists() -> None:
    target = {"a": {"b": 1, "c": 2}, "d": [1, 2], "e": "x"}
    before = copy.deepcopy(target)
    merged = json_merge(target, {"a": {"b": None, "f": {"g": None}}, "d": [3], "e": {"h": 1}})
    assert merged == {"a": {"c": 2, "f": {}}, "d": [3], "e": {"h": 1}}
    assert target == before


@pytest.mark.parametrize(
    ("operation", "result"),
    [
        ({"op": "add", "path": "/list/1", "value": 9}, {"list": [1, 9, 2], "a/b": {"c": 1}}),
        ({"op": "add", "path": "/list/-", "value": 9}, {"list": [1, 2, 9], "a/b": {"c": 1}}),
        ({"op": "replace", "path": "/a~1b/c", "value": 2}, {"list": [1, 2], "a/b": {"c": 2}}),
        ({"op": "remove", "path": "/list/0"}, {"list": [2], "a/b": {"c": 1}}),
        ({"op": "move", "from": "/a~1b/c", "path": "/x"}, {"list": [1, 2], "a/b": {}, "x": 1}),
        (
            {"op": "copy", "from": "/list", "path": "/x"},
            {"list": [1, 2], "a/b": {"c": 1}, "x": [1, 2]},
        ),
        ({"op": "test", "path": "/a~1b/c", "value": 1}, {"list": [1, 2], "a/b": {"c": 1}}),
    ],
)
def test_json_patch_operations_change_the_object(operation: Json, result: Json) -> None:
    assert json_patch({"list": [1, 2], "a/b": {"c": 1}}, [operation]) == result


@pytest.mark.parametrize(
    ("operations", "code"),
    [
        ({"op": "add"}, 400),
        ([{"path": "/a"}], 422),
        ([{"op": "shift", "path": "/a"}], 422),
        ([{"op": "add", "path": "a", "value": 1}], 422),
        ([{"op": "remove", "path": "/missing"}], 422),
        ([{"op": "replace", "path": "/missing", "value": 1}], 422),
        ([{"op": "test", "path": "/a", "value": 2}], 422),
        ([{"op": "add", "path": "/list/5", "value": 1}], 422),
    ],
)
def test_inapplicable_json_patches_are_refused(operations: Any, code: int) -> None:
    with pytest.raises(ApiError) as caught:
        json_patch({"a": 1, "list": []}, operations)
    assert caught.value.code == code


def merge_into(target: Json, patch: Json, kind: str = "Pod") -> Json:
    return strategic_merge(target, patch, struct_of(kind))


def containers(*names: str) -> Json:
    return {"spec": {"containers": [{"name": name, "image": "old"} for name in names]}}


def test_containers_merge_by_name_and_new_containers_are_appended() -> None:
    patch = {"spec": {"containers": [{"name": "b", "image": "new"}, {"name": "d"}]}}
    merged = merge_into(containers("a", "b", "c"), patch)["spec"]["containers"]
    assert [(c["name"], c.get("image")) for c in merged] == [
        ("a", "old"),
        ("b", "new"),
        ("c", "old"),
        ("d", None),
    ]


def test_patch_delete_removes_an_element() -> None:
    patch = {"spec": {"containers": [{"name": "a", "$patch": "delete"}]}}
    merged = merge_into(containers("a", "b"), patch)
    assert [c["name"] for c in merged["spec"]["containers"]] == ["b"]


def test_patch_replace_replaces_a_list_or_a_map() -> None:
    patch = {"spec": {"containers": [{"$patch": "replace"}, {"name": "z"}]}}
    merged = merge_into(containers("a"), patch)
    assert merged["spec"]["containers"] == [{"name": "z"}]
    labels = {"metadata": {"labels": {"a": "b"}}}
    replacement = {"metadata": {"labels": {"$patch": "replace", "c": "d"}}}
    replaced = merge_into(labels, replacement)
    assert replaced["metadata"]["labels"] == {"c": "d"}


def test_set_element_order_orders_items_and_keeps_other_items_in_place() -> None:
    patch = {
        "spec": {
            "$setElementOrder/containers": [{"name": "c"}, {"name": "a"}],
            "containers": [{"name": "a", "image": "new"}],
        }
    }
    merged = merge_into(containers("a", "b", "c"), patch)["spec"]["containers"]
    assert [c["name"] for c in merged] == ["b", "c", "a"]


def test_ports_merge_by_container_port_in_pods_and_by_port_in_services() -> None:
    pod = {"spec": {"containers": [{"name": "a", "ports": [{"containerPort": 80}]}]}}
    patch = {"spec": {"containers": [{"name": "a", "ports": [{"containerPort": 80, "name": "w"}]}]}}
    merged = merge_into(pod, patch)["spec"]["containers"][0]["ports"]
    assert merged == [{"containerPort": 80, "name": "w"}]
    service = {"spec": {"ports": [{"port": 80}, {"port": 81}]}}
    removal = {"spec": {"ports": [{"port": 81, "$patch": "delete"}]}}
    merged = merge_into(service, removal, "Service")
    assert merged["spec"]["ports"] == [{"port": 80}]


def test_tolerations_and_taints_are_replaced_as_a_whole() -> None:
    pod = {"spec": {"tolerations": [{"key": "a"}], "taints": [{"key": "a"}]}}
    merged = merge_into(pod, {"spec": {"tolerations": [{"key": "b"}], "taints": []}})
    assert merged["spec"] == {"tolerations": [{"key": "b"}], "taints": []}


def test_finalizers_are_a_set() -> None:
    obj = {"metadata": {"finalizers": ["a", "b"]}}
    merged = merge_into(obj, {"metadata": {"finalizers": ["b", "c"]}})
    assert merged["metadata"]["finalizers"] == ["a", "b", "c"]
    removal = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}
    assert merge_into(obj, removal)["metadata"]["finalizers"] == ["b"]


def test_owner_references_merge_by_uid() -> None:
    obj = {"metadata": {"ownerReferences": [{"uid": "1", "name": "a"}]}}
    patch = {"metadata": {"ownerReferences": [{"uid": "1", "$patch": "delete"}, {"uid": "2"}]}}
    assert merge_into(obj, patch)["metadata"]["ownerReferences"] == [{"uid": "2"}]


def test_retain_keys_removes_other_keys() -> None:
    obj = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    assert merge_into(obj, patch, "Deployment")["spec"]["strategy"] == {"type": "Recreate"}


def test_an_element_without_its_key_is_refused() -> None:
    with pytest.raises(ApiError) as caught:
        merge_into(containers("a"), {"spec": {"containers": [{"image": "new"}]}})
    assert caught.value.code == 500
    assert "does not contain declared merge key: name" in caught.value.message
    with pytest.raises(ApiError, match="unknown patch type found: explode"):
        merge_into({"a": {}}, {"a": {"$patch": "explode"}})


def test_the_target_is_never_changed() -> None:
    target = containers("a", "b")
    before = copy.deepcopy(target)
    merge_into(target, {"spec": {"containers": [{"name": "a", "image": "new"}]}})
    assert target == before
