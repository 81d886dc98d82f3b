"""Quantities are parsed, rounded and printed exactly as in Kubernetes."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stowage.api.decoding.errors import QuantityError
from stowage.api.values.quantity import (
    INT64_MAX,
    INT64_MIN,
    parse_quantity,
    quantity_milli_value,
    quantity_nano_value,
    quantity_value,
    rounded_up,
)

SUFFIXES = {
    **{s: Fraction(10) ** e for s, e in {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6}.items()},
    **{s: Fraction(10) ** e for s, e in {"G": 9, "e2": 2, "E-1": -1, "e+3": 3}.items()},
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
}
NUMBERS = st.from_regex(r"[0-9]{1,7}(\.[0-9]{1,6})?", fullmatch=True)


MAX_INT64 = 2**63 - 1


def ceiling(amount: Fraction) -> int:
    return -(-amount.numerator // amount.denominator)


@given(NUMBERS, st.sampled_from(sorted(SUFFIXES)))
def test_amounts_are_exact_and_rounded_up(number: str, suffix: str) -> None:
    exact = Fraction(number) * SUFFIXES[suffix]
    nano = ceiling(exact * 10**9)
    quantity = parse_quantity(number + suffix)
    assert quantity.nano_value() == nano
    assert quantity.value() == ceiling(exact)
    assert quantity.milli_value() == min(ceiling(exact * 1000), MAX_INT64)


@given(NUMBERS, st.sampled_from(sorted(SUFFIXES)))
def test_the_canonical_form_has_the_same_value_and_is_canonical(number: str, suffix: str) -> None:
    quantity = parse_quantity(number + suffix)
    again = parse_quantity(quantity.canonical())
    assert again.nano_value() == quantity.nano_value()
    assert again.canonical() == quantity.canonical()


@pytest.mark.parametrize(
    "text", ["", " ", "1 ", "abc", "1e", "1KiB", "500K", "1.2.3", "--1", "\uff11"]
)
def test_an_invalid_quantity_is_an_error_with_its_text(text: str) -> None:
    with pytest.raises(QuantityError, match="is not a quantity") as refusal:
        parse_quantity(text)
    assert refusal.value.text == text


def test_a_number_with_thousands_of_digits_is_an_error() -> None:
    with pytest.raises(QuantityError):
        parse_quantity("9" * 5000)


@pytest.mark.parametrize("text", ["1e30", "12345678901234567890", "1e999999999", "9" * 40])
def test_amounts_beyond_int64_are_capped_and_reported(text: str) -> None:
    quantity = parse_quantity(text)
    assert quantity.value() == INT64_MAX
    assert quantity.scaled_value(0) is None
    assert parse_quantity(f"-{text}").value() == INT64_MIN


def test_binary_suffixes_cap_at_int64_when_parsed() -> None:
    assert parse_quantity("16Ei").nano_value() == INT64_MAX * 10**9
    assert parse_quantity("-16Ei").value() == -INT64_MAX


def test_an_amount_below_one_nano_unit_counts_as_one() -> None:
    assert str(parse_quantity("1e-999999999")) == "1e-9"
    assert parse_quantity("0.0000000001").milli_value() == 1


def test_numbers_are_parsed_like_their_text() -> None:
    assert quantity_value(3) == 3
    assert quantity_milli_value(0.1) == 100
    assert quantity_nano_value("1m") == 1_000_000


def test_sums_of_nano_units_are_rounded_away_from_zero_once() -> None:
    assert rounded_up(1_500_000_000) == 2
    assert rounded_up(1_500_000_001, -3) == 1501
    assert rounded_up(-1) == -1
    assert rounded_up(10**40) == INT64_MAX


def test_the_parsed_text_is_kept_only_if_kubernetes_keeps_it() -> None:
    assert str(parse_quantity("1e3")) == "1e3"
    assert str(parse_quantity("0.1")) == "100m"
    assert parse_quantity("1.5Gi").canonical() == "1536Mi"
