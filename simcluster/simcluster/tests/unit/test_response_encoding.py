"""The encoding of answers: format, indentation, compression and headers."""

import gzip

import pytest

from simcluster.apiserver.response_encoding import (
    GZIP_FROM_BYTES,
    Wishes,
    common_headers,
    compressed,
    is_pretty,
    styled,
    wants_yaml,
)


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("application/yaml", True),
        ("application/yaml, application/json", True),
        ("application/json, application/yaml", False),
        ("*/*, application/yaml", True),
        ("", False),
    ],
)
def test_yaml_is_sent_on_request(accept: str, expected: bool) -> None:
    assert wants_yaml(accept) is expected


def test_answers_are_indented_by_user_agent_or_the_pretty_option() -> None:
    assert is_pretty(Wishes(agent="curl/8.0"))
    assert not is_pretty(Wishes(agent="curl/8.0", pretty="false"))
    assert is_pretty(Wishes(agent="kubectl", pretty="true"))
    assert not is_pretty(Wishes(agent="curl/8.0", pretty="yes"))
    assert is_pretty(Wishes("application/json;pretty=1", agent="kubectl"))
    assert styled(b'{"a":1}', Wishes(pretty="1")) == (b'{\n  "a": 1\n}', "application/json")
    assert styled(b'{"a":"1"}', Wishes("application/yaml")) == (b'a: "1"\n', "application/yaml")


async def test_only_large_bodies_are_compressed_and_only_if_accepted() -> None:
    large = b"x" * GZIP_FROM_BYTES
    packed, headers = await compressed(large, Wishes(takes_gzip=True))
    assert headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed) == large
    assert await compressed(large, Wishes()) == (large, {})
    assert await compressed(large[1:], Wishes(takes_gzip=True)) == (large[1:], {})


def test_each_answer_has_its_own_audit_id() -> None:
    assert common_headers()["Audit-Id"] != common_headers()["Audit-Id"]
