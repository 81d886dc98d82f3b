"""YAML that would fill the memory or the stack is refused."""

from __future__ import annotations

import pytest
import yaml

from stowage.api.decoding.bounded_yaml import INVALID, MAX_VALUES, StrictLoader, documents

BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
"""A few hundred characters that stand for ten billion values."""


def test_aliases_that_expand_to_many_values_are_refused() -> None:
    with pytest.raises(yaml.YAMLError, match=f"expand to more than {MAX_VALUES:,} values"):
        list(documents(BOMB))


def test_the_values_of_all_documents_count_together() -> None:
    document = f"a: &a [{'x,' * 1_000}]\nb: [{'*a,' * 400}]\n"
    assert len(list(documents(document))) == 1
    with pytest.raises(yaml.YAMLError, match="its aliases expand"):
        list(documents(f"{document}---\n{document}"))


def test_a_value_that_contains_itself_is_refused() -> None:
    with pytest.raises(yaml.YAMLError, match="its aliases expand"):
        list(documents("&a [*a]"))


def test_a_document_may_have_any_number_of_values_that_are_written() -> None:
    (found,) = documents("[&a 1, *a, " + "1," * MAX_VALUES + "]")
    assert len(found.builtins) == MAX_VALUES + 2


@pytest.mark.parametrize("text", ["[" * 100_000, "a: " * 3, "- " * 100_000, "2001-99-99", "!!x y"])
def test_what_is_no_yaml_is_an_error_and_ends_nothing(text: str) -> None:
    with pytest.raises(INVALID):
        list(documents(text))


def test_no_tag_makes_an_object_of_python() -> None:
    with pytest.raises(yaml.YAMLError, match="could not determine a constructor"):
        list(documents("!!python/object/apply:os.getcwd []"))


def test_a_configuration_reads_numbers_as_json_does() -> None:
    (found,) = documents('{"a": 1e3, "b": -9.2e18, "c": 2.5E-1}', StrictLoader)
    assert found.builtins == {"a": 1000.0, "b": -9.2e18, "c": 0.25}
