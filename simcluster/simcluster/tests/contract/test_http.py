"""HTTP: errors, headers and formats."""

import gzip
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
import yaml

from simcluster.tests.contract.statuses import expect_status
from simcluster.tests.support.api_client import (
    CONFIG_MAPS,
    PODS,
    ApiClient,
    config_map,
    node,
    pod,
)
from simcluster.tests.support.api_servers import ApiServerUnderTest

Json = dict[str, Any]

NOT_FOUND = "the server could not find the requested resource"
NOT_ALLOWED = "the server does not allow this method on the requested resource"


@pytest.mark.parametrize(
    "path", ["/nosuch", "/apis/nosuch.example", "/apis/nosuch.example/v1/pods", "/openapi"]
)
async def test_an_unknown_path_is_not_found_in_plain_text(http: ApiClient, path: str) -> None:
    reply = await http.get(path)
    assert (reply.status, reply.text) == (404, "404 page not found\n")
    assert reply.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert reply.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/nosuches",
        "/apis/apps/v1/nosuches",
        f"{PODS}/a/nosuch",
        "/api/v1/pods/a",
        "/api/v2",
        "/apis/apps/v9",
        "/apis/apps/v9/pods",
    ],
)
async def test_an_unknown_version_or_resource_of_a_served_group_is_answered_with_a_status(
    http: ApiClient, path: str
) -> None:
    reply = await http.get(path)
    expect_status(reply, 404, "NotFound", NOT_FOUND)
    assert reply.body["details"] == {}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", PODS),
        ("PATCH", PODS),
        ("POST", f"{PODS}/a"),
        ("POST", "/api/v1/pods"),
        ("DELETE", "/api/v1/namespaces"),
        ("DELETE", "/api/v1/pods"),
        ("DELETE", f"{PODS}/a/status"),
        ("GET", "/apis/authentication.k8s.io/v1/tokenreviews"),
    ],
)
async def test_an_unsupported_method_is_answered_with_a_status(
    http: ApiClient, method: str, path: str
) -> None:
    reply = await http.request(method, path, {} if method != "GET" else None)
    expect_status(reply, 405, "MethodNotAllowed", NOT_ALLOWED)
    assert reply.body["details"] == {}


async def test_every_answer_has_an_audit_id_and_forbids_caching(http: ApiClient) -> None:
    first, second = await http.get(PODS), await http.get(f"{PODS}/missing")
    for reply in (first, second):
        assert reply.headers["Cache-Control"] == "no-cache, private"
        assert reply.headers["Content-Type"] == "application/json"
        assert reply.headers["X-Kubernetes-Pf-Flowschema-Uid"]
        assert reply.headers["X-Kubernetes-Pf-Prioritylevel-Uid"]
        assert "Date" in reply.headers
    assert first.headers["Audit-Id"] != second.headers["Audit-Id"]


async def test_the_audit_id_of_a_request_is_returned(http: ApiClient) -> None:
    reply = await http.request("GET", PODS, headers={"Audit-ID": "my-own-id"})
    assert reply.headers["Audit-Id"] == "my-own-id"


async def test_the_version_and_the_paths_are_always_indented(http: ApiClient) -> None:
    for path in ("/version", "/"):
        assert (await http.get(path)).text.startswith('{\n  "')


async def test_yaml_is_accepted_and_returned(http: ApiClient) -> None:
    text = yaml.safe_dump(config_map("in-yaml", a="b")).encode()
    made = await http.request("POST", CONFIG_MAPS, text, "application/yaml", "application/yaml")
    assert made.status == 201
    assert made.headers["Content-Type"] == "application/yaml"
    assert yaml.safe_load(made.text)["data"] == {"a": "b"}
    again = await http.request("GET", f"{CONFIG_MAPS}/in-yaml", accept="application/yaml")
    assert yaml.safe_load(again.text) == yaml.safe_load(made.text)


async def test_a_client_that_accepts_neither_json_nor_yaml_gets_406(http: ApiClient) -> None:
    for path in (PODS, f"{PODS}/missing", "/apis"):
        reply = await http.request("GET", path, accept="text/html")
        expect_status(
            reply,
            406,
            "NotAcceptable",
            "only the following media types are accepted: application/json, application/yaml, "
            "application/vnd.kubernetes.protobuf",
        )
    reply = await http.request("GET", f"{PODS}?watch=1", accept="application/yaml")
    assert reply.status == 406


async def test_the_preferred_media_type_comes_first(http: ApiClient) -> None:
    for accept, given in (
        ("application/json;q=0.5, application/yaml", "application/yaml"),
        ("text/html, application/json;q=0.1", "application/json"),
        ("*/*, application/yaml", "application/yaml"),
    ):
        reply = await http.request("GET", "/api/v1/namespaces/default", accept=accept)
        assert reply.headers["Content-Type"] == given


async def test_an_unknown_content_type_is_refused_with_the_known_ones(http: ApiClient) -> None:
    reply = await http.request("POST", CONFIG_MAPS, b"<a/>", "text/xml")
    assert (reply.status, reply.body["reason"]) == (415, "UnsupportedMediaType")
    start = "the body of the request was in an unknown format - accepted media types include: "
    assert reply.body["message"].startswith(f"{start}application/json, application/yaml")


@pytest.mark.parametrize(
    ("query", "agent", "is_indented"),
    [
        ("?pretty=true", "client", True),
        ("?pretty=false", "curl/8", False),
        ("?pretty=yes", "curl/8", False),
        ("", "curl/8.5.0", True),
        ("", "Mozilla/5.0 (X11)", True),
        ("", "kubectl/v1.36", False),
    ],
)
async def test_answers_to_browsers_and_curl_are_indented(
    http: ApiClient, query: str, agent: str, is_indented: bool
) -> None:
    path = f"/api/v1/namespaces/default{query}"
    reply = await http.request("GET", path, headers={"User-Agent": agent})
    assert ("\n  " in reply.text) is is_indented
    assert reply.body["metadata"]["name"] == "default"


@asynccontextmanager
async def raw_session(server: ApiServerUnderTest) -> AsyncIterator[aiohttp.ClientSession]:
    """A session that does not decompress bodies."""
    headers = {"Authorization": f"Bearer {server.token}"} if server.token else {}
    connector = aiohttp.TCPConnector(ssl=server.tls if server.tls is not None else True)
    async with aiohttp.ClientSession(
        server.url, headers=headers, connector=connector, auto_decompress=False
    ) as session:
        yield session


async def test_large_answers_are_compressed_on_request(
    http: ApiClient, shared_server: ApiServerUnderTest
) -> None:
    text = "".join(f"line {number}\n" for number in range(20_000))
    await http.create(CONFIG_MAPS, config_map("large", text=text))
    async with raw_session(shared_server) as session:
        path, headers = f"{CONFIG_MAPS}/large", {"Accept-Encoding": "gzip"}
        async with session.get(path, headers=headers) as response:
            assert response.headers["Content-Encoding"] == "gzip"
            assert json.loads(gzip.decompress(await response.read()))["data"]["text"] == text
        async with session.get(path, headers={"Accept-Encoding": "identity"}) as response:
            assert "Content-Encoding" not in response.headers
        async with session.get("/api/v1/namespaces/default", headers=headers) as response:
            assert "Content-Encoding" not in response.headers
        watch = f"{CONFIG_MAPS}?watch=1&timeoutSeconds=1&fieldSelector=metadata.name=large"
        async with session.get(watch, headers=headers) as response:
            assert "Content-Encoding" not in response.headers
    await http.delete(f"{CONFIG_MAPS}/large")


async def test_a_name_may_be_percent_encoded(http: ApiClient) -> None:
    await http.create(CONFIG_MAPS, config_map("encoded.name"))
    assert (await http.get(f"{CONFIG_MAPS}/encoded%2Ename")).status == 200


async def test_deprecated_kinds_cause_a_warning(http: ApiClient) -> None:
    reply = await http.get("/api/v1/namespaces/default/endpoints")
    text = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
    assert reply.headers["Warning"] == f'299 - "{text}"'
    assert "Warning" not in (await http.get(PODS)).headers


async def test_connections_to_a_pod_without_a_node_are_refused(http: ApiClient) -> None:
    await http.create(PODS, pod("unreachable"))
    log = await http.request("GET", f"{PODS}/unreachable/log", accept="*/*")
    assert (log.status, log.text, "Content-Type" in log.headers) == (204, "", False)
    for path in ("exec?command=ls&stdout=true", "portforward", "attach?stdout=true"):
        reply = await http.request("POST", f"{PODS}/unreachable/{path}")
        message = "pod unreachable does not have a host assigned"
        expect_status(reply, 400, "BadRequest", message)
    missing = await http.request("POST", f"{PODS}/missing/exec?command=ls&stdout=true")
    expect_status(missing, 404, "NotFound", 'pods "missing" not found')


async def test_the_log_of_an_unknown_container_is_refused(http: ApiClient) -> None:
    two = pod("talkative")
    two["spec"]["containers"].append({"name": "other", "image": "x:1"})
    await http.create(PODS, two)
    first = two["spec"]["containers"][0]["name"]
    log = f"{PODS}/talkative/log"
    expect_status(
        await http.get(log),
        400,
        "BadRequest",
        f"a container name must be specified for pod talkative, choose one of: [{first} other]",
    )
    message = "container third is not valid for pod talkative"
    expect_status(await http.get(f"{log}?container=third"), 400, "BadRequest", message)
    refused = await http.get(f"{log}?container=other&tailLines=-1")
    expect_status(
        refused,
        422,
        "Invalid",
        'PodLogOptions "talkative" is invalid: tailLines: Invalid value: -1: must be greater than '
        "or equal to 0",
    )


async def test_a_malformed_json_body_is_refused_with_its_error(http: ApiClient) -> None:
    start = "the object provided is unrecognized (must be of type ConfigMap): "
    why = f"{start}couldn't get version/kind; json parse error: "
    for body, message in (
        (b"", f"{why}unexpected end of JSON input (<empty>)"),
        (b'{"a', f'{why}unexpected end of JSON input ({{"a)'),
        (
            b"{a}",
            f"{why}invalid character 'a' looking for beginning of object key string ({{a}})",
        ),
    ):
        reply = await http.request("POST", CONFIG_MAPS, body, "application/json")
        expect_status(reply, 400, "BadRequest", message)


async def test_a_service_without_endpoints_is_not_available(http: ApiClient) -> None:
    service = {"metadata": {"name": "idle"}, "spec": {"ports": [{"port": 80}]}}
    await http.create("/api/v1/namespaces/default/services", service)
    reply = await http.get("/api/v1/namespaces/default/services/idle:80/proxy/some/path")
    message = 'no endpoints available for service "idle:80"'
    expect_status(reply, 503, "ServiceUnavailable", message)


async def test_head_and_options_are_refused(http: ApiClient) -> None:
    for method in ("HEAD", "OPTIONS"):
        assert (await http.request(method, PODS)).status == 405


async def test_a_node_posted_to_the_path_of_another_resource_is_refused(http: ApiClient) -> None:
    reply = await http.post(PODS, node("misplaced"))
    assert (reply.status, reply.body["reason"]) == (400, "BadRequest")


async def test_answers_do_not_name_the_http_library(
    http: ApiClient, shared_server: ApiServerUnderTest
) -> None:
    async with raw_session(shared_server) as session:
        for path in ("/api/v1/namespaces/default", "/api/v1/nodes", "/healthz", "/nothing"):
            async with session.get(path) as response:
                assert "Server" not in response.headers


@pytest.mark.parametrize(
    "text",
    [b'"\xff"', b'"\\ud800"', b'"\xe2\x82"'],
    ids=["byte", "lone surrogate", "cut character"],
)
async def test_what_is_no_character_is_replaced(http: ApiClient, text: bytes) -> None:
    body = b'{"metadata":{"name":"replaced"},"data":{"k":%s}}' % text
    reply = await http.request("POST", f"{CONFIG_MAPS}?dryRun=All", body, "application/json")
    assert (reply.status, reply.body["data"]["k"].strip("\ufffd")) == (201, "")
    assert reply.body["data"]["k"]


NO_OBJECT = "the object provided is unrecognized (must be of type ConfigMap): "
JSON_ERROR = f"{NO_OBJECT}couldn't get version/kind; json parse error: "
HEADER = (
    'Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string '
    '"json:\\"kind,omitempty\\"" }'
)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"1", f"json: cannot unmarshal number into {HEADER} (31)"),
        (b"[]", f"json: cannot unmarshal array into {HEADER} (5b5d)"),
        (b"NaN", "invalid character 'N' looking for beginning of value (4e614e)"),
        (b"\xef\xbb\xbf{}", "invalid character '\xef' looking for beginning of value (efbbbf7b7d)"),
    ],
)
async def test_a_body_that_is_no_json_object_is_refused(
    http: ApiClient, body: bytes, why: str
) -> None:
    reply = await http.request("POST", CONFIG_MAPS, body, "application/json")
    expect_status(reply, 400, "BadRequest", JSON_ERROR + why)


@pytest.mark.parametrize("number", [b"1e400", b"1" * 5000], ids=["exponent", "digits"])
async def test_a_number_that_is_too_large_is_refused(http: ApiClient, number: bytes) -> None:
    body = b'{"metadata":{"name":"a"},"data":{"k":%s}}' % number
    reply = await http.request("POST", CONFIG_MAPS, body, "application/json")
    assert (reply.status, reply.body["reason"]) == (400, "BadRequest")
    assert "json: cannot unmarshal number" in reply.body["message"]


@pytest.mark.parametrize("content_type", ["application/json", "application/yaml"])
async def test_a_body_that_is_nested_too_deeply_is_refused(
    http: ApiClient, content_type: str
) -> None:
    reply = await http.request("POST", CONFIG_MAPS, b"[" * 200_000, content_type)
    assert (reply.status, reply.body["reason"]) == (400, "BadRequest")
    assert "exceeded max depth" in reply.body["message"]


async def test_yaml_aliases_do_not_expand_without_bound(http: ApiClient) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    reply = await http.request("POST", CONFIG_MAPS, "\n".join(lines).encode(), "application/yaml")
    assert (reply.status, reply.body["reason"]) == (400, "BadRequest")


async def test_a_selector_may_be_long(http: ApiClient) -> None:
    wanted = ",".join(f"value-{number}" for number in range(5000))
    reply = await http.get(f"{PODS}?labelSelector=app+in+({wanted})")
    assert (reply.status, reply.body["items"]) == (200, [])


async def test_keys_of_yaml_are_texts(http: ApiClient) -> None:
    body = b'metadata: {name: keys}\ndata: {1: "x", true: "y", n: "z", 2.0: "v", .inf: "w"}'
    reply = await http.request("POST", f"{CONFIG_MAPS}?dryRun=All", body, "application/yaml")
    wanted = {"1": "x", "true": "y", "n": "z", "2": "v", ".inf": "w"}
    assert (reply.status, reply.body["data"]) == (201, wanted)


@pytest.mark.parametrize("content_type", ["garbage", "application/octet-stream"])
async def test_a_body_of_another_type_is_refused(http: ApiClient, content_type: str) -> None:
    body = b'{"metadata":{"name":"a"}}'
    reply = await http.request("POST", f"{CONFIG_MAPS}?dryRun=All", body, content_type)
    assert (reply.status, reply.body["reason"]) == (415, "UnsupportedMediaType")


@pytest.mark.parametrize(("flag", "status"), [("true", 400), ("", 400), ("0", 404)])
async def test_the_export_parameter_is_refused(http: ApiClient, flag: str, status: int) -> None:
    assert (await http.get(f"{PODS}/none?export={flag}")).status == status


async def test_texts_that_look_like_other_types_are_in_double_quotes_in_yaml(
    http: ApiClient,
) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    data = {
        "flag": "true",
        "number": "1",
        "short": "y",
        "float": "1e3",
        "long": "word " * 30 + "end",
        "lines": "a\nb\n",
    }
    body = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "texts"}, "data": data}
    await http.create(path, body)
    text = (await http.get(f"{path}/texts", "application/yaml")).text
    assert 'flag: "true"\n' in text
    assert 'number: "1"\n' in text
    assert 'short: "y"\n' in text
    assert 'float: "1e3"\n' in text
    assert f"long: {data['long']}\n" in text
    assert "lines: |\n    a\n    b\n" in text


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("x", 'invalid duration "x"'),
        ("5", 'missing unit in duration "5"'),
        ("5d", 'unknown unit "d" in duration "5d"'),
        ("1h5", 'missing unit in duration "1h5"'),
        ("", ""),
        ("0", ""),
        ("-1.5s", ""),
        ("1h2m.5s", ""),
    ],
)
async def test_a_timeout_is_a_duration(http: ApiClient, given: str, why: str) -> None:
    reply = await http.get(f"{CONFIG_MAPS}?timeout={given}")
    assert reply.status == (400 if why else 200)
    if why:
        prefix = "invalid timeout specified in the request URL - time: "
        assert reply.body["message"] == prefix + why


async def test_the_timeout_of_a_watch_is_not_read(http: ApiClient) -> None:
    async with http.watch(CONFIG_MAPS, "timeoutSeconds=1&timeout=x") as watch:
        assert "ERROR" not in [event["type"] for event in await watch.rest()]


async def test_a_method_that_http_does_not_know_is_not_allowed(http: ApiClient) -> None:
    reply = await http.request("BREW", CONFIG_MAPS)
    expect_status(reply, 405, "MethodNotAllowed", NOT_ALLOWED)
    assert "Audit-Id" in reply.headers


async def test_only_the_first_document_of_a_yaml_body_is_read(http: ApiClient) -> None:
    text = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: first}\n---\n{wrong: ["
    reply = await http.request(
        "POST", f"{CONFIG_MAPS}?dryRun=All", text.encode(), "application/yaml"
    )
    assert (reply.status, reply.body["metadata"]["name"]) == (201, "first")


async def test_a_compact_answer_ends_its_line(http: ApiClient) -> None:
    for path in ("/api/v1/namespaces/default", "/api/v1/namespaces", "/api/v1/nodes/nope"):
        assert (await http.get(path)).text.endswith("}\n")
