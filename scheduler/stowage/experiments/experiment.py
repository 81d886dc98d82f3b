"""What a sweep runs, and what comes of it."""

from __future__ import annotations

import hashlib
import traceback
from importlib.metadata import version
from math import isfinite
from typing import Any, Protocol

import msgspec

from stowage.analysis.simulation.result import ExperimentFailed, ExperimentResult

_MAX_REASON = 500
_ENCODER = msgspec.json.Encoder(order="sorted", enc_hook=str)


class Experiment(Protocol):
    """One policy on one trace with one seed. It is pickled to run in another process."""

    @property
    def key(self) -> str:
        """Its name, ``trace/policy/seed``: the same in every process."""
        ...

    @property
    def fingerprint(self) -> str:
        """A hash of everything the result depends on; see `fingerprint_of`."""
        ...

    def run(self) -> ExperimentResult:
        """Run it in the calling process.

        Raises:
            Exception: The experiment ends without a result; the text says why.
        """
        ...


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """How one experiment ended: with a result, or with the reason why it has none.

    Attributes:
        key: The experiment's.
        fingerprint: The experiment's.
        result: Its result; None if it failed.
        failure: Why it failed; None if it did not.
    """

    key: str
    fingerprint: str
    result: ExperimentResult | None = None
    failure: str | None = None


def fingerprint_of(*inputs: Any) -> str:
    """A hash of the inputs of an experiment and of the version of Stowage.

    Args:
        inputs: Texts, bytes, numbers, mappings, structs; other values by their ``str``.
    """
    digest = hashlib.sha256(version("stowage").encode())
    for each in inputs:
        encoded = each if isinstance(each, bytes) else _ENCODER.encode(each)
        digest.update(len(encoded).to_bytes(8, "big"))
        digest.update(encoded)
    return digest.hexdigest()


def outcome_of(experiment: Experiment) -> Outcome:
    """Run an experiment; an exception becomes the reason of its failure."""
    key, fingerprint = experiment.key, experiment.fingerprint
    try:
        result = experiment.run()
        _check_numbers(result)
        return Outcome(key, fingerprint, result=result)
    except ExperimentFailed as failed:
        return Outcome(key, fingerprint, failure=str(failed)[:_MAX_REASON])
    except Exception as error:  # a plugin may raise anything; it ends this experiment only
        return Outcome(key, fingerprint, failure=_reason(error))


def _check_numbers(result: ExperimentResult) -> None:
    """Refuse numbers that have no mean and no JSON.

    Raises:
        ExperimentFailed: A number is infinite or none.
    """
    for name, value in result.metrics.items():
        if not isfinite(value):
            raise ExperimentFailed(f"metric {name} is {value}")
    for series in result.series:
        if not all(map(isfinite, series.y)):
            raise ExperimentFailed(f"series {series.name} has a value that is not finite")


def _reason(error: Exception) -> str:
    """The error and the line that raised it."""
    summary = "".join(traceback.format_exception_only(error)).strip()
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    return f"{summary[:_MAX_REASON]}{where}"
