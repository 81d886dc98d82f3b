"""Dataclasses that become such when they are first used."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from stowage.cli.late_dataclasses import late_dataclasses


def _declared() -> tuple[Any, Any, Any]:
    """A dataclass, one that inherits from it, and a plain class that inherits from the second."""
    with late_dataclasses():

        @dataclasses.dataclass
        class Base:
            name: str
            sizes: list[int] = dataclasses.field(default_factory=list)

        @dataclasses.dataclass(frozen=True)
        class _Frozen:
            size: int = 1

        class Plain(Base):
            def __init__(self) -> None:
                super().__init__("plain")

    return Base, _Frozen, Plain


def test_a_class_gets_its_methods_with_its_first_instance() -> None:
    base, frozen, _ = _declared()
    assert "__eq__" not in vars(base)
    assert base("a") == base("a", [])
    assert repr(base("a", [1])).endswith("Base(name='a', sizes=[1])")
    with pytest.raises(dataclasses.FrozenInstanceError):
        frozen().size = 2
    with pytest.raises(TypeError, match="name"):
        base()


def test_a_class_becomes_a_dataclass_when_its_fields_are_asked_for() -> None:
    base, _, plain = _declared()
    assert [each.name for each in dataclasses.fields(plain)] == ["name", "sizes"]
    assert base("a").sizes == []


def test_a_dataclass_declared_later_has_the_fields_of_its_base() -> None:
    base, _, _ = _declared()

    @dataclasses.dataclass
    class Later(base):  # type: ignore[misc, valid-type]
        size: int = 1

    assert dataclasses.asdict(Later("a", size=2)) == {"name": "a", "sizes": [], "size": 2}


def test_dataclasses_may_inherit_from_each_other_before_they_are_used() -> None:
    with late_dataclasses():

        @dataclasses.dataclass
        class Base:
            name: str

        @dataclasses.dataclass
        class Derived(Base):
            size: int

    assert Derived("a", 1) == Derived("a", 1)
    assert Base("a") == Base("a")


def test_an_init_of_a_class_that_inherits_calls_that_of_the_dataclass() -> None:
    _, _, plain = _declared()
    assert plain().name == "plain"
    assert plain().sizes == []


def test_a_class_with_slots_or_an_init_of_its_own_is_a_dataclass_at_once() -> None:
    with late_dataclasses():

        @dataclasses.dataclass(slots=True)
        class Slots:
            size: int

        @dataclasses.dataclass
        class Own:
            size: int

            def __init__(self) -> None:
                self.size = 1

    assert "__eq__" in vars(Slots)
    assert "__eq__" in vars(Own)


def test_after_the_block_dataclasses_are_made_at_once() -> None:
    _declared()

    @dataclasses.dataclass
    class Now:
        size: int

    assert "__eq__" in vars(Now)
