"""An object that is invalid JSON does not stop its page or its watch."""

from __future__ import annotations

import pytest

from stowage.api.decoding.decode import (
    ObjectList,
    decode_event_metadata,
    decode_list,
    decode_watch_event,
)
from stowage.api.decoding.errors import InvalidObject
from stowage.api.objects.node import Node

GOOD = b'{"metadata":{"name":"good","uid":"g"}}'
#: JSON of a label value -> whether it can be decoded as text.
DAMAGE: dict[bytes, bool] = {
    b"NaN": False,
    b"-Infinity": False,
    b'"\xff\xfe"': True,
    b'"\\ud800"': True,
    b'"\\ude00 \\ud83d\\ude00"': True,
    b'"\x00"': True,
    b"[" * 700 + b"]" * 700: False,
    b'{"a":' * 700 + b"1" + b"}" * 700: False,
    b"1" + b"0" * 1_000: False,
    b"1e999999": False,
}


def _bad(value: bytes) -> bytes:
    head = (
        b'{"metadata":{"name":"bad","namespace":"d","uid":"b","resourceVersion":"7","labels":{"x":'
    )
    return head + value + b"}}}"


def _page(*items: bytes) -> ObjectList[Node]:
    joined = b",".join(items)
    return decode_list(Node, b'{"metadata":{"resourceVersion":"1"},"items":[' + joined + b"]}")


@pytest.mark.parametrize("value", DAMAGE, ids=range(len(DAMAGE)))
def test_the_other_objects_of_a_page_are_decoded_and_the_invalid_one_is_named(value: bytes) -> None:
    page = _page(GOOD, _bad(value), GOOD)
    names = [node.metadata.name for node in page.items]
    assert page.metadata.resource_version == "1"
    if DAMAGE[value]:
        assert names == ["good", "bad", "good"]
        return
    assert names == ["good", "good"]
    (invalid,) = page.invalid
    assert (invalid.kind, invalid.name, invalid.uid) == ("Node", "d/bad", "b")
    assert len(str(invalid)) < 1_000


@pytest.mark.parametrize("value", [each for each, mendable in DAMAGE.items() if not mendable])
def test_an_event_of_an_invalid_object_raises_an_error_with_its_name(value: bytes) -> None:
    line = b'{"type":"ADDED","object":' + _bad(value) + b"}"
    with pytest.raises(InvalidObject) as refused:
        decode_watch_event(Node, line)
    assert (refused.value.name, refused.value.uid) == ("d/bad", "b")


def test_text_that_is_no_valid_unicode_is_replaced() -> None:
    (node,) = _page(_bad(rb'"\\ud800 \ud800 \ud83d\ude00"')).items
    assert node.metadata.labels["x"] == "\\ud800 ? \U0001f600"


def test_the_metadata_of_an_invalid_event_is_read() -> None:
    line = b'{"type":"DELETED","object":' + _bad(b"7") + b"}"
    event_type, metadata = decode_event_metadata(line)
    assert event_type == "DELETED"
    assert metadata == {"name": "bad", "namespace": "d", "uid": "b", "resourceVersion": "7"}
    for nothing in (b"", b"7", b"{", b'{"object":7}'):
        assert decode_event_metadata(nothing) == ("", {})


def test_a_byte_order_mark_before_a_page_is_ignored() -> None:
    data = b'\xef\xbb\xbf{"metadata":{"resourceVersion":"3"},"items":[' + GOOD + b"]}"
    assert [node.metadata.name for node in decode_list(Node, data).items] == ["good"]


def test_a_page_whose_brackets_do_not_match_is_invalid() -> None:
    with pytest.raises(InvalidObject):
        _page(GOOD, _bad(b'{"a"'), GOOD)


@pytest.mark.parametrize("cut", [20, 50, 80])
def test_a_truncated_page_is_invalid(cut: int) -> None:
    data = b'{"metadata":{"resourceVersion":"1"},"items":[' + GOOD + b"," + GOOD + b"]}"
    with pytest.raises(InvalidObject):
        decode_list(Node, data[:cut])
