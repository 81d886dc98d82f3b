"""Durations are read and written in Go's notation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stowage.api.values.duration import Duration, format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "want_s"),
    [
        ("15s", 15),
        ("1m30s", 90),
        ("1h", 3600),
        ("500ms", 0.5),
        ("1.5s", 1.5),
        (".5m", 30),
        ("2h45m0s", 9900),
        ("-3s", -3),
        ("0", 0),
        ("250us", 0.00025),
        ("250µs", 0.00025),
    ],
)
def test_a_duration_is_parsed_to_seconds(text: str, want_s: float) -> None:
    assert parse_duration(text) == want_s


@pytest.mark.parametrize("text", ["", "15", "s", "15 s", "1d", "15sec", "1m-30s", "."])
def test_an_invalid_duration_is_an_error_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected e\.g\. 15s or 1m30s"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "want"),
    [
        (0, "0s"),
        (15, "15s"),
        (90, "1m30s"),
        (3600, "1h0m0s"),
        (0.5, "500ms"),
        (1.25, "1.25s"),
        (0.0000015, "1.5us"),
        (1e-9, "1ns"),
        (100.000000001, "1m40.000000001s"),
        (-3, "-3s"),
    ],
)
def test_a_duration_is_formatted_as_in_go(seconds: float, want: str) -> None:
    assert format_duration(seconds) == want
    assert str(Duration(seconds)) == want


@given(st.integers(min_value=-(10**15), max_value=10**15))
def test_a_formatted_duration_is_parsed_to_the_same_value(nanoseconds: int) -> None:
    seconds = nanoseconds / 1e9
    assert parse_duration(format_duration(seconds)) == pytest.approx(seconds, abs=1e-9)
