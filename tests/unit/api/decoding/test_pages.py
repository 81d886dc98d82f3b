"""Large pages of lists are decoded in steps."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stowage.api.decoding.decode import ObjectList, decode_list
from stowage.api.decoding.errors import InvalidObject
from stowage.api.decoding.pages import decode_list_steps
from stowage.api.objects.pod import Pod

_GOOD = {"metadata": {"name": "good", "labels": {"a": "b"}}}


def _decoded(data: bytes, step_bytes: int) -> tuple[int, ObjectList[Pod]]:
    """The number of steps, and the page."""
    steps, number = decode_list_steps(Pod, data, step_bytes), 1
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return number, end.value
        number += 1


def _page(*items: Any, **fields: Any) -> bytes:
    return json.dumps({"metadata": {"resourceVersion": "5"}, "items": items, **fields}).encode()


def test_a_small_page_is_decoded_in_one_step() -> None:
    data = _page(_GOOD, _GOOD)
    assert _decoded(data, len(data)) == (1, decode_list(Pod, data))


def test_each_step_decodes_about_as_many_bytes() -> None:
    data = _page(*[_GOOD] * 9)
    number, page = _decoded(data, 3 * len(json.dumps(_GOOD)))
    assert number == 4
    assert page == decode_list(Pod, data)


@pytest.mark.parametrize(
    "items",
    [
        [_GOOD, {"metadata": {"name": "bad", "labels": 3}}, _GOOD],
        [{"metadata": {"name": "nulls", "labels": None}}],
        [_GOOD, None],
        [],
    ],
)
def test_steps_separate_valid_and_invalid_objects_like_one_step(items: list[Any]) -> None:
    data = _page(*items)
    page, want = _decoded(data, 1)[1], decode_list(Pod, data)
    assert (page.metadata, page.items) == (want.metadata, want.items)
    assert [str(each) for each in page.invalid] == [str(each) for each in want.invalid]


def test_a_page_that_the_fast_path_refuses_is_read_leniently() -> None:
    data = _page(_GOOD).replace(b'"b"', b"NaN")
    page = _decoded(data, 1)[1]
    assert [each.name for each in page.invalid] == ["good"]


@pytest.mark.parametrize("data", [b"no JSON", b'{"items": 3}', b'{"kind": "NodeList"}'])
def test_a_page_that_is_no_list_of_the_kind_is_an_error(data: bytes) -> None:
    with pytest.raises(InvalidObject, match="PodList"):
        _decoded(data, 1)
