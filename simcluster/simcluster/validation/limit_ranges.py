"""LimitRanges: their items and the order of their amounts."""

from typing import NamedTuple

from simcluster.apiserver import errors
from simcluster.validation import rules
from simcluster.validation.rules import Errors
from simcluster.values import Json
from stowage.api.values.quantity import quantity_milli_value

_AMOUNTS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
_CLAIM = "PersistentVolumeClaim"


class _Order(NamedTuple):
    """Of two amounts the first is not greater; an error is in one field and shows one of them."""

    low: str
    high: str
    place: str
    shown: str
    words: str


_ORDERS = (
    _Order("min", "max", "min", "min", "min value {} is greater than max value {}"),
    _Order(
        "min",
        "defaultRequest",
        "defaultRequest",
        "defaultRequest",
        "min value {} is greater than default request value {}",
    ),
    _Order(
        "defaultRequest",
        "max",
        "defaultRequest",
        "defaultRequest",
        "default request value {} is greater than max value {}",
    ),
    _Order(
        "defaultRequest",
        "default",
        "defaultRequest",
        "defaultRequest",
        "default request value {} is greater than default limit value {}",
    ),
    _Order("min", "default", "default", "min", "min value {} is greater than default value {}"),
    _Order("default", "max", "default", "max", "default value {} is greater than max value {}"),
)


def _type_rules(item: Json, path: str) -> Errors:
    kind = item.get("type")
    if not kind:
        yield errors.required(f"{path}.type")
    elif kind == "Pod":
        for field in ("default", "defaultRequest"):
            if item.get(field):
                detail = "may not be specified when `type` is 'Pod'"
                yield errors.forbidden_field(f"{path}.{field}", detail)
    elif kind == _CLAIM and not any(
        "storage" in (item.get(field) or {}) for field in ("min", "max")
    ):
        detail = "either minimum or maximum storage value is required, but neither was provided"
        yield errors.required(f"{path}.limits", detail)


def _ordered(item: Json, path: str) -> Errors:
    amounts = {field: item.get(field) or {} for field in _AMOUNTS}
    for name in sorted({name for found in amounts.values() for name in found}):
        for order in _ORDERS:
            low, high = amounts[order.low].get(name), amounts[order.high].get(name)
            if low is None or high is None:
                continue
            if quantity_milli_value(low) > quantity_milli_value(high):
                place = f"{path}.{order.place}[{name}]"
                shown = amounts[order.shown][name]
                yield errors.invalid_value(place, shown, order.words.format(low, high))


LIMIT_RANGES = {
    "limitranges": rules.validation(
        rules.inside(
            "spec",
            rules.each("limits", rules.Distinct("type", counts_empty=False), _type_rules, _ordered),
        )
    )
}
