"""The verb and resource of a request for authorization."""

import pytest

from simcluster.auth.request_attributes import Attributes, attributes_of


def read(method: str, path: str, **query: str) -> tuple[str, str, str, str, str, str]:
    found = attributes_of(method, path, query)
    assert found.is_resource_request
    return (
        found.verb,
        found.group,
        found.namespace,
        found.resource,
        found.subresource,
        found.name,
    )


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/api/v1/nodes", ("list", "", "", "nodes", "", "")),
        ("GET", "/api/v1/nodes/n", ("get", "", "", "nodes", "", "n")),
        ("POST", "/api/v1/namespaces/a/pods", ("create", "", "a", "pods", "", "")),
        (
            "POST",
            "/api/v1/namespaces/a/pods/p/binding",
            ("create", "", "a", "pods", "binding", "p"),
        ),
        (
            "PATCH",
            "/api/v1/namespaces/a/pods/p/status",
            ("patch", "", "a", "pods", "status", "p"),
        ),
        ("DELETE", "/api/v1/namespaces/a/pods", ("deletecollection", "", "a", "pods", "", "")),
        ("DELETE", "/api/v1/namespaces/a/pods/p", ("delete", "", "a", "pods", "", "p")),
        (
            "PUT",
            "/apis/apps/v1/namespaces/a/deployments/d",
            ("update", "apps", "a", "deployments", "", "d"),
        ),
        ("GET", "/api/v1/namespaces/a", ("get", "", "a", "namespaces", "", "a")),
        (
            "PUT",
            "/api/v1/namespaces/a/finalize",
            ("update", "", "a", "namespaces", "finalize", "a"),
        ),
    ],
)
def test_paths_are_parsed_like_in_the_api_server(
    method: str, path: str, expected: tuple[str, ...]
) -> None:
    assert read(method, path) == expected


@pytest.mark.parametrize("flag", ["1", "true", "yes", ""])
def test_a_watch_has_the_verb_watch(flag: str) -> None:
    assert read("GET", "/api/v1/pods", watch=flag)[0] == "watch"


def test_a_request_with_watch_false_has_the_verb_list() -> None:
    assert read("GET", "/api/v1/pods", watch="false")[0] == "list"


@pytest.mark.parametrize("selector", ["metadata.name=c", "metadata.name==c", "a=b,metadata.name=c"])
def test_a_field_selector_of_one_name_gives_the_request_that_name(selector: str) -> None:
    path = "/api/v1/namespaces/a/configmaps"
    assert read("GET", path, fieldSelector=selector)[5] == "c"


@pytest.mark.parametrize("selector", ["metadata.name!=c", "metadata.namespace=c", ""])
def test_other_field_selectors_give_the_request_no_name(selector: str) -> None:
    path = "/api/v1/namespaces/a/configmaps"
    assert read("GET", path, fieldSelector=selector)[5] == ""


@pytest.mark.parametrize("path", ["/api", "/api/v1", "/apis/apps/v1", "/version", "/metrics"])
def test_discovery_requests_have_no_resource(path: str) -> None:
    assert attributes_of("GET", path, {}) == Attributes("get", path)
