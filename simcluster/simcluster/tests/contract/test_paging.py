"""Pages of a list all show the same revision."""

import base64
import json
from typing import Any

import pytest

from simcluster import SimulatedCluster
from simcluster.tests.support.api_client import PODS, ApiClient, pod

Json = dict[str, Any]


async def page(api: ApiClient, query: str) -> tuple[list[str], Json]:
    """Names and list metadata of a page."""
    reply = await api.get(f"{PODS}?{query}")
    assert reply.status == 200, reply.text
    return [item["metadata"]["name"] for item in reply.body["items"]], reply.body["metadata"]


async def make_pods(api: ApiClient, names: str) -> None:
    for name in names:
        await api.create(PODS, pod(name))


def token(**fields: Any) -> str:
    """A continue token made by hand."""
    return base64.urlsafe_b64encode(json.dumps(fields).encode()).decode().rstrip("=")


async def test_all_pages_show_the_revision_of_the_first_page_despite_writes(
    api: ApiClient,
) -> None:
    await make_pods(api, "abcdef")
    first, metadata = await page(api, "limit=2")
    await api.delete(f"{PODS}/c?gracePeriodSeconds=0")
    await api.patch(f"{PODS}/d", {"metadata": {"labels": {"new": "x"}}})
    await api.create(PODS, pod("bb"))
    await api.create(PODS, pod("g"))
    second, middle = await page(api, f"limit=2&continue={metadata['continue']}")
    third, last = await page(api, f"limit=2&continue={middle['continue']}")
    assert (first, second, third) == (["a", "b"], ["c", "d"], ["e", "f"])
    revisions = {found["resourceVersion"] for found in (metadata, middle, last)}
    assert revisions == {metadata["resourceVersion"]}
    assert "continue" not in last
    assert "remainingItemCount" not in last


async def test_the_remaining_items_are_counted_at_the_revision_of_the_first_page(
    api: ApiClient,
) -> None:
    await make_pods(api, "abcde")
    _, first = await page(api, "limit=1")
    await api.create(PODS, pod("f"))
    _, second = await page(api, f"limit=1&continue={first['continue']}")
    assert (first["remainingItemCount"], second["remainingItemCount"]) == (4, 3)


async def test_a_page_with_all_items_has_no_continue_token(api: ApiClient) -> None:
    await make_pods(api, "ab")
    assert "continue" not in (await page(api, "limit=2"))[1]
    assert "continue" not in (await page(api, "limit=0"))[1]


async def test_a_full_page_has_a_continue_token_even_if_no_selected_object_follows(
    api: ApiClient,
) -> None:
    await make_pods(api, "abc")
    first, metadata = await page(api, "limit=1&labelSelector=app=a")
    assert first == ["a"]
    assert "remainingItemCount" not in metadata
    rest, last = await page(api, f"limit=1&labelSelector=app=a&continue={metadata['continue']}")
    assert (rest, last.get("continue")) == ([], None)


async def test_the_continue_token_contains_the_revision_and_the_start_key(api: ApiClient) -> None:
    await make_pods(api, "ab")
    _, metadata = await page(api, "limit=1")
    text = metadata["continue"]
    fields = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    assert fields["v"] == "meta.k8s.io/v1"
    assert str(fields["rv"]) == metadata["resourceVersion"]
    assert fields["start"].endswith("a\0")


async def test_the_limit_may_change_from_page_to_page(api: ApiClient) -> None:
    await make_pods(api, "abcd")
    _, metadata = await page(api, "limit=1")
    assert (await page(api, f"continue={metadata['continue']}"))[0] == ["b", "c", "d"]


async def test_a_continue_token_can_be_combined_only_with_revision_zero(api: ApiClient) -> None:
    await make_pods(api, "ab")
    _, metadata = await page(api, "limit=1")
    query = f"limit=1&continue={metadata['continue']}"
    reply = await api.get(f"{PODS}?{query}&resourceVersion={metadata['resourceVersion']}")
    assert reply.status == 400
    message = "specifying resource version is not allowed when using continue"
    assert reply.body["message"] == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("%25", "continue key is not valid: illegal base64 data at input byte 0"),
        (token(v="v9", rv=1, start="a"), "server does not recognize this encoded version v9"),
        (token(v="meta.k8s.io/v1", rv=0, start="a"), "incorrect encoded start resourceVersion"),
        (token(v="meta.k8s.io/v1", rv=5, start=""), "encoded start key empty"),
        (token(v="meta.k8s.io/v1", rv=5, start="../a"), "continue key is not valid: ../a"),
    ],
)
async def test_an_invalid_continue_token_is_a_bad_request(
    api: ApiClient, text: str, message: str
) -> None:
    reply = await api.get(f"{PODS}?limit=1&continue={text}")
    assert (reply.status, reply.body["reason"]) == (400, "BadRequest")
    assert message in reply.body["message"]


async def test_the_error_for_an_expired_continue_token_has_one_for_the_current_state(
    simulated_cluster: SimulatedCluster, api: ApiClient
) -> None:
    await make_pods(api, "abc")
    _, metadata = await page(api, "limit=1")
    await api.create(PODS, pod("bb"))
    simulated_cluster.server.forget_history()
    expired = await api.get(f"{PODS}?limit=1&continue={metadata['continue']}")
    assert (expired.status, expired.body["reason"]) == (410, "Expired")
    assert "or use the continue token in this response" in expired.body["message"]
    names, rest = await page(api, f"continue={expired.body['metadata']['continue']}")
    assert names == ["b", "bb", "c"]
    assert int(rest["resourceVersion"]) > int(metadata["resourceVersion"])
