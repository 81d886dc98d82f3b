"""Label selectors match as in Kubernetes, and selectors of equal meaning are equal."""

import pytest

from stowage.api.decoding.errors import SelectorError
from stowage.api.objects.meta import LabelSelector, LabelSelectorRequirement
from stowage.api.values.selectors import (
    EVERYTHING,
    NOTHING,
    Operator,
    Requirement,
    compile_label_selector,
    selector_from_labels,
    valid_requirement,
)


def expression(key: str, operator: str, *values: str) -> LabelSelector:
    return LabelSelector(match_expressions=(LabelSelectorRequirement(key, operator, values),))


def test_an_absent_selector_selects_nothing_and_an_empty_one_everything() -> None:
    assert compile_label_selector(None) == NOTHING
    assert compile_label_selector(LabelSelector()) == EVERYTHING
    assert not NOTHING.matches({})
    assert EVERYTHING.matches({"any": "thing"})


@pytest.mark.parametrize(
    ("operator", "values", "present", "other", "absent"),
    [
        (Operator.IN, ("a",), True, False, False),
        (Operator.NOT_IN, ("a",), False, True, True),
        (Operator.EXISTS, (), True, True, False),
        (Operator.DOES_NOT_EXIST, (), False, False, True),
    ],
)
def test_each_operator_matches_values_and_absence(
    operator: Operator, values: tuple[str, ...], present: bool, other: bool, absent: bool
) -> None:
    requirement = Requirement("key", operator, values)
    matches = [requirement.matches_value(value) for value in ("a", "b", None)]
    assert matches == [present, other, absent]


@pytest.mark.parametrize(
    ("value", "greater"), [("6", True), ("5", False), ("x", False), (None, False), ("+6", True)]
)
def test_gt_compares_only_integers(value: str | None, greater: bool) -> None:
    assert Requirement("key", Operator.GT, ("5",)).matches_value(value) is greater
    assert not Requirement("key", Operator.LT, ("9" * 30,)).matches_value("1")


def test_selectors_of_equal_meaning_are_equal_in_any_order() -> None:
    one = LabelSelector(
        match_labels={"a": "1"},
        match_expressions=(LabelSelectorRequirement("b", "In", ("y", "x", "y")),),
    )
    other = LabelSelector(
        match_expressions=(
            LabelSelectorRequirement("b", "In", ("x", "y")),
            LabelSelectorRequirement("a", "In", ("1",)),
        ),
    )
    assert compile_label_selector(one) == compile_label_selector(other)
    assert hash(compile_label_selector(one)) == hash(compile_label_selector(other))


def test_thousands_of_excluded_values_of_a_label_are_one_requirement() -> None:
    excluded = [LabelSelectorRequirement("app", "NotIn", (f"v{index}",)) for index in range(3_000)]
    others = (
        LabelSelectorRequirement("app", "Exists"),
        LabelSelectorRequirement("tier", "NotIn", ("db",)),
    )
    selector = compile_label_selector(LabelSelector(match_expressions=(*excluded, *others)))
    assert len(selector.requirements) == 3
    assert selector.matches({"app": "other"})
    for labels in ({"app": "v2999"}, {}, {"app": "other", "tier": "db"}):
        assert not selector.matches(labels)


def test_an_invalid_one_of_thousands_of_values_is_named() -> None:
    values = (*(f"v{index}" for index in range(3_000)), "-wrong")
    with pytest.raises(SelectorError, match=r'values\[0\]\[app\]: Invalid value: "-wrong"'):
        compile_label_selector(expression("app", "In", *values))


def test_requirements_can_be_added_to_a_selector_but_not_to_nothing() -> None:
    more = [Requirement("hash", Operator.IN, ("1",))]
    restricted = selector_from_labels({"app": "web"}).with_requirements(more)
    assert restricted.matches({"app": "web", "hash": "1"})
    assert not restricted.matches({"app": "web"})
    assert NOTHING.with_requirements(more) == NOTHING


@pytest.mark.parametrize(
    ("selector", "complaint"),
    [
        (expression("app", "Gt", "1"), '"Gt" is not a valid label selector operator'),
        (expression("app", "In"), "for 'in', 'notin' operators, values set can't be empty"),
        (expression("app", "Exists", "x"), "values set must be empty for exists"),
        (expression("bad key", "Exists"), 'key: Invalid value: "bad key": name part must'),
        (expression("/app", "Exists"), "prefix part must be non-empty"),
        (expression("UP/app", "Exists"), "prefix part a lowercase RFC 1123"),
        (expression("a" * 64, "Exists"), "no more than 63 bytes"),
        (expression("app", "In", "-x"), "a valid label must be an empty string or consist"),
        (expression("app", "In", "x" * 64), "must be no more than 63 bytes"),
    ],
)
def test_an_invalid_selector_is_an_error_with_the_reason(
    selector: LabelSelector, complaint: str
) -> None:
    with pytest.raises(SelectorError) as refusal:
        compile_label_selector(selector)
    assert complaint in str(refusal.value)


@pytest.mark.parametrize(
    ("key", "value", "reasons"),
    [
        ("a", "x" * 64, ["must be no more than 63 bytes"]),
        ("a", "é" * 32, ["must be no more than 63 bytes", "a valid label must be an empty"]),
        ("é" * 32, "x", ["name part must be no more than 63 bytes", "name part must consist of"]),
        ("Example.com/a", "x", ["prefix part a lowercase RFC 1123 subdomain must consist of "]),
        (
            f"{'é' * 127}/a",
            "x",
            ["prefix part must be no more than 253 bytes", "prefix part a lowercase RFC 1123 "],
        ),
        ("/a", "x", ["prefix part must be non-empty"]),
        ("a/", "x", ["name part must be non-empty", "name part must consist of "]),
        ("\ud800", "x", ["name part must consist of "]),
        ("\ud800/a", "x", ["prefix part a lowercase RFC 1123 subdomain must consist of "]),
        ("a", "\ud800", ["a valid label must be an empty string"]),
    ],
)
def test_every_reason_why_a_key_or_value_is_invalid_is_given(
    key: str, value: str, reasons: list[str]
) -> None:
    with pytest.raises(SelectorError) as refusal:
        valid_requirement(key, Operator.IN, (value,))
    given = str(refusal.value).partition('": ')[2].split("; ")
    assert len(given) == len(reasons)
    assert all(text.startswith(reason) for text, reason in zip(given, reasons, strict=True))
