"""Coroutines with large results."""

from __future__ import annotations

import pytest

from stowage.cli.coroutines import run_coroutine


class _Unprintable:
    def __repr__(self) -> str:
        raise AssertionError("nobody reads this text")


async def _succeed() -> _Unprintable:
    return _Unprintable()


async def _fail() -> None:
    raise ValueError("no cluster")


def test_the_result_is_returned_without_a_text_of_it() -> None:
    assert isinstance(run_coroutine(_succeed()), _Unprintable)


def test_an_exception_of_the_coroutine_is_raised() -> None:
    with pytest.raises(ValueError, match="no cluster"):
        run_coroutine(_fail())
