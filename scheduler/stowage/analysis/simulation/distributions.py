"""Distributions of lifetimes and sizes, as a workload file writes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from stowage.api.config.errors import ConfigError

FloatArray: TypeAlias = NDArray[np.float64]
Read: TypeAlias = Callable[[object], float]
"""Reads one number of a distribution, such as a duration; raises ValueError."""

_BATCH = 1024
_PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "uniform": ("min", "max"),
    "exponential": ("mean",),
    "lognormal": ("median", "sigma"),
    "choice": ("values",),
}
_EXPECTED = "a value, or one of constant, uniform, exponential, lognormal, choice"
_WEIGHTS = "weights"


class Distribution(msgspec.Struct, frozen=True):
    """A distribution of positive numbers.

    Attributes:
        kind: ``constant``, ``uniform``, ``exponential``, ``lognormal`` or ``choice``.
        first: The constant, the minimum, the mean, or the median.
        second: The maximum of ``uniform``, or the standard deviation of the logarithm.
        values: The values of ``choice``.
        shares: Their probabilities.
        least: No number is smaller.
        most: No number is larger.
    """

    kind: str
    first: float = 0.0
    second: float = 0.0
    values: tuple[float, ...] = ()
    shares: tuple[float, ...] = ()
    least: float = 0.0
    most: float = float("inf")

    @property
    def mean(self) -> float:
        """The mean, as if there were no bounds."""
        match self.kind:
            case "uniform":
                return (self.first + self.second) / 2
            case "lognormal":
                return float(self.first * np.exp(self.second**2 / 2))
            case "choice":
                return float(np.dot(self.values, self.shares))
        return self.first

    def draw(self, generator: np.random.Generator, size: int) -> FloatArray:
        """``float64[size]`` of independent numbers."""
        match self.kind:
            case "uniform":
                drawn = generator.uniform(self.first, self.second, size)
            case "exponential":
                drawn = generator.exponential(self.first, size)
            case "lognormal":
                drawn = generator.lognormal(np.log(self.first), self.second, size)
            case "choice":
                drawn = generator.choice(np.array(self.values), size, p=self.shares)
            case _:
                drawn = np.full(size, self.first)
        bounded: FloatArray = np.clip(drawn, self.least, self.most)
        return bounded

    def numbers(self, generator: np.random.Generator) -> Iterator[float]:
        """Number after number, without an end."""
        while True:
            yield from self.draw(generator, _BATCH).tolist()


def decode_distribution(
    value: object, read: Read, path: str, errors: list[ConfigError]
) -> Distribution | None:
    """Decode what a workload file writes; None, and more errors, if it is invalid.

    Args:
        value: One number, or a mapping of the kind to its parameters.
        read: Reads the numbers.
        path: The field.
        errors: Receives the errors.
    """
    if not isinstance(value, Mapping):
        value = {"constant": value}
    if len(value) != 1 or next(iter(value)) not in ("constant", *_PARAMETERS):
        errors.append(ConfigError(path, value, _EXPECTED))
        return None
    kind, given = next(iter(value.items()))
    field, before = f"{path}.{kind}", len(errors)
    if kind == "constant":
        constant = _number(given, read, path, errors)
        return None if constant is None else Distribution(kind, constant)
    if kind == "choice" and not isinstance(given, Mapping):
        given = {"values": given}
    parameters = _Parameters(given, field, read, errors)
    found = parameters.choice() if kind == "choice" else parameters.continuous(kind)
    return found if len(errors) == before else None


class _Parameters:
    """Decodes the parameters of one distribution."""

    def __init__(self, given: object, path: str, read: Read, errors: list[ConfigError]) -> None:
        self._given: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
        self._path = path
        self._read = read
        self._errors = errors
        if not isinstance(given, Mapping):
            errors.append(ConfigError(path, given, "a mapping of parameters"))

    def choice(self) -> Distribution | None:
        values = self._list("values", self._read)
        self._refuse_unknown(("values", _WEIGHTS))
        if not values:
            return None
        weights = [1.0] * len(values)
        if _WEIGHTS in self._given:
            weights = self._list(_WEIGHTS, plain_number)
            if len(weights) != len(values) or sum(weights) <= 0:
                self._refuse(_WEIGHTS, f"{len(values)} weights, one a value, not all 0")
                return None
        shares = np.array(weights) / sum(weights)
        return Distribution("choice", values=tuple(values), shares=tuple(shares.tolist()))

    def continuous(self, kind: str) -> Distribution | None:
        wanted = _PARAMETERS[kind]
        bounds = () if kind == "uniform" else ("min", "max")
        self._refuse_unknown((*wanted, *bounds))
        reads = [plain_number if name == "sigma" else self._read for name in wanted]
        numbers = [self._one(name, read) for name, read in zip(wanted, reads, strict=True)]
        least = self._one("min", self._read) if "min" in self._given and bounds else 0.0
        most = self._one("max", self._read) if "max" in self._given and bounds else float("inf")
        first, *rest = [0.0 if each is None else each for each in numbers]
        second = rest[0] if rest else 0.0
        if kind == "uniform" and second < first:
            self._refuse("max", "at least min")
        if kind == "lognormal" and numbers[0] == 0:
            self._refuse("median", "more than 0")
        if least is None or most is None:
            return None
        return Distribution(kind, first, second, least=least, most=most)

    def _one(self, name: str, read: Read) -> float | None:
        if name not in self._given:
            self._errors.append(ConfigError(self._path, dict(self._given), f"a field {name}"))
            return None
        return _number(self._given[name], read, f"{self._path}.{name}", self._errors)

    def _list(self, name: str, read: Read) -> list[float]:
        given = self._given.get(name)
        if not isinstance(given, list | tuple) or not given:
            self._refuse(name, "a list of values")
            return []
        found = [
            _number(each, read, f"{self._path}.{name}[{index}]", self._errors)
            for index, each in enumerate(given)
        ]
        return [each for each in found if each is not None]

    def _refuse_unknown(self, known: tuple[str, ...]) -> None:
        for name in self._given:
            if name not in known:
                self._refuse(name, f"no such field; known are {', '.join(known)}")

    def _refuse(self, name: str, expected: str) -> None:
        self._errors.append(ConfigError(f"{self._path}.{name}", self._given.get(name), expected))


def plain_number(value: object) -> float:
    """A number that is not negative.

    Raises:
        ValueError: It is something else.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e18:
        raise ValueError("a number that is not negative")
    return float(value)


def _number(value: object, read: Read, path: str, errors: list[ConfigError]) -> float | None:
    try:
        return read(value)
    except ValueError as error:
        errors.append(ConfigError(path, value, str(error)))
        return None
