"""Values are interned as small codes, which are reused."""

from __future__ import annotations

from stowage.state.interning import ABSENT, Interner


def test_equal_values_share_a_code() -> None:
    interner: Interner[str] = Interner()
    assert interner.acquire("a") == interner.acquire("a") == interner.get("a")
    assert interner.acquire("b") != interner.get("a")
    assert interner.get("c") == ABSENT


def test_a_code_is_reused_when_its_value_is_released() -> None:
    interner: Interner[str] = Interner()
    code = interner.acquire("a")
    interner.acquire("a")
    interner.release(code)
    assert interner.get("a") == code
    interner.release(code)
    assert interner.get("a") == ABSENT
    assert interner.values[code] is None
    assert interner.acquire("b") == code
    assert len(interner) == 1


def test_the_version_grows_only_when_a_code_changes_its_value() -> None:
    interner: Interner[str] = Interner()
    code = interner.acquire("a")
    version = interner.version
    interner.acquire("a")
    interner.release(code)
    assert interner.version == version
    interner.release(code)
    assert interner.version > version


def test_several_holders_are_added_and_removed_at_once() -> None:
    interner: Interner[str] = Interner()
    code = interner.acquire("a", 3)
    assert interner.acquire("a", 2) == code
    interner.release(code, 4)
    assert interner.get("a") == code
    interner.release(code)
    assert interner.get("a") == ABSENT


def test_many_values_are_acquired_like_one_after_the_other() -> None:
    at_once, singly = Interner[str](), Interner[str]()
    for interner in (at_once, singly):
        interner.acquire("free")
        interner.release(interner.acquire("kept") - 1)
    values = ["a", None, "kept", "a", "b"]
    wanted = [ABSENT if value is None else singly.acquire(value) for value in values]
    assert at_once.acquire_all(values) == wanted
    for code in wanted:
        if code != ABSENT:
            at_once.release(code)
            singly.release(code)
    assert at_once.values == singly.values
