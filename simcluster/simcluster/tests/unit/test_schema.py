"""The types of the served resources, and decoding into them."""

from importlib.resources import files
from typing import Any

import msgspec
import pytest

from simcluster.schema import DecodingError, conform, struct_of
from simcluster.tests.support.client_models import types

Json = dict[str, Any]


def test_the_types_equal_those_of_the_kubernetes_client() -> None:
    stored = files("simcluster.schema").joinpath("types.json").read_bytes()
    assert msgspec.json.decode(stored) == types()


def conformed(obj: Json, kind: str = "Pod") -> tuple[Json, list[str]]:
    struct = struct_of(kind)
    assert struct is not None
    return obj, conform(obj, struct).unknown


def test_unknown_fields_are_dropped_and_reported() -> None:
    pod = {"spec": {"containers": [{"name": "c", "colour": "red"}], "flavour": 1}, "taste": {}}
    assert conformed(pod) == (
        {"spec": {"containers": [{"name": "c"}]}},
        ["spec.containers[0].colour", "spec.flavour", "taste"],
    )


def test_null_and_empty_fields_are_dropped_unless_go_uses_a_pointer() -> None:
    pod = {
        "metadata": {"labels": {}, "annotations": None},
        "spec": {"nodeName": "", "hostNetwork": False, "tolerations": [], "priority": 0},
    }
    assert conformed(pod)[0] == {"metadata": {}, "spec": {"priority": 0}}


def test_empty_fields_of_a_workload_are_not_stored() -> None:
    pod = {"hostNetwork": False, "containers": [{"name": "c", "stdin": False, "tty": False}]}
    metadata = {"creationTimestamp": None, "generation": 0, "labels": {"app": "a"}}
    spec = {"paused": False, "replicas": 0, "template": {"metadata": metadata, "spec": pod}}
    kept = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c"}]}}
    found = conformed({"spec": spec}, "Deployment")[0]
    assert found["spec"] == {"replicas": 0, "template": kept}


def test_quantities_are_canonicalized_everywhere() -> None:
    node = {"status": {"capacity": {"cpu": 4, "memory": "0.5Gi"}}}
    assert conformed(node, "Node")[0]["status"]["capacity"] == {"cpu": "4", "memory": "512Mi"}


QUANTITY_FORM = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
CANNOT = "json: cannot unmarshal "


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"containers": "x"},
            CANNOT + "string into Go struct field PodSpec.spec.containers of type []v1.Container",
        ),
        (
            {"containers": [{"env": [{"name": "a", "value": 1}]}]},
            CANNOT + "number into Go struct field EnvVar.spec.containers.env.value of type string",
        ),
        (
            {"restartPolicy": 3},
            CANNOT + "number into Go struct field PodSpec.spec.restartPolicy of type "
            "v1.RestartPolicy",
        ),
        (
            {"priority": 3_000_000_000},
            CANNOT + "number 3000000000 into Go struct field PodSpec.spec.priority of type int32",
        ),
        (
            {"containers": [{"resources": {"limits": {"cpu": "abc"}}}]},
            QUANTITY_FORM,
        ),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_with_gos_message(spec: Json, message: str) -> None:
    with pytest.raises(DecodingError) as caught:
        conformed({"spec": spec})
    assert str(caught.value) == message


def test_duplicate_keys_are_reported() -> None:
    struct = struct_of("ConfigMap")
    assert struct is not None
    config_map: Json = {"metadata": {"name": "a"}, "data": {"x": "1", "y": "2"}}
    assert conform(config_map, struct).num_keys == 5
    config_map = {"metadata": {"name": "a"}, "data": {"x": "1", "y": "2"}, "wrong": {"z": 1}}
    assert conform(config_map, struct).num_keys == 7
