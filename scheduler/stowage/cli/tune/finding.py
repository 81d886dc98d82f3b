"""What a search found, and the configuration file that says what it gains on which data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from stowage.analysis.simulation.estimates import Estimate, estimate, significant
from stowage.analysis.simulation.result import ExperimentResult
from stowage.analysis.tuning.objectives import METRICS, UNPLACED
from stowage.cli.effective import as_yaml
from stowage.cli.tune.task import PRESENT
from stowage.experiments.search import Trial


class Gain(msgspec.Struct, frozen=True):
    """One metric under the present and the tuned configuration.

    Attributes:
        metric: The metric.
        present: Its mean.
        tuned: Its mean.
        difference: Tuned less present, seed by seed and workload by workload.
    """

    metric: str
    present: float
    tuned: float
    difference: Estimate

    def __str__(self) -> str:
        margin = self.difference.margin
        interval = "" if margin is None else f" ± {significant(margin, 2)}"
        part = f" ({self.difference.mean / self.present:+.1%})" if self.present else ""
        return (
            f"{self.metric} {self.present:.5g} -> {self.tuned:.5g}, "
            f"difference {significant(self.difference.mean, 3, '+')}{interval}{part}"
        )


class Finding(msgspec.Struct, frozen=True):
    """The trial that was chosen, and what it gains.

    Attributes:
        trial: The trial.
        trained: The gains on the arrivals of the search.
        held_back: The gains on the arrivals that were held back.
    """

    trial: Trial
    trained: Sequence[Gain]
    held_back: Sequence[Gain]

    @property
    def is_confirmed(self) -> bool:
        """Whether the held-back arrivals show the gain as well.

        Some objective has to be better there, with an interval that excludes 0. None may be worse,
        nor may more pods be without a node, unless that was so on the arrivals of the search: of
        several objectives, one may be the price of another.
        """
        objectives = [each for each in self.held_back if each.metric != UNPLACED]
        return any(_sign(each) < 0 for each in objectives) and all(
            _sign(later) <= 0 or _sign(first) > 0
            for first, later in zip(self.trained, self.held_back, strict=True)
        )


def gains(objectives: Sequence[str], results: Sequence[ExperimentResult], name: str) -> list[Gain]:
    """The gains of one policy over the present one, in the metrics of the objectives.

    Args:
        objectives: Names of `METRICS`.
        results: Of both policies, with the same workloads and seeds.
        name: The policy.
    """
    present = [each for each in results if each.policy == PRESENT]
    tuned = {(each.trace, each.seed): each for each in results if each.policy == name}
    made = []
    for metric in (*(METRICS[each] for each in objectives), UNPLACED):
        pairs = [
            (each.metrics[metric], tuned[each.trace, each.seed].metrics[metric]) for each in present
        ]
        made.append(
            Gain(
                metric,
                estimate([before for before, _ in pairs]).mean,
                estimate([after for _, after in pairs]).mean,
                estimate([after - before for before, after in pairs]),
            )
        )
    return made


def configuration_text(
    configuration: Mapping[str, Any], finding: Finding, data: Sequence[str], command: str
) -> str:
    """The configuration file, with a comment on what it gains.

    Args:
        configuration: The configuration as mappings and lists.
        finding: What was found.
        data: What the search and the held-back arrivals were; one line each.
        command: The command line.
    """
    comment = "".join(f"# {line}".rstrip() + "\n" for line in _comment(finding, data, command))
    return comment + as_yaml(configuration)


def _comment(finding: Finding, data: Sequence[str], command: str) -> Iterator[str]:
    yield f"Made by: {command}"
    yield ""
    searched, held_back = data
    yield f"Searched on {searched}:"
    yield from (f"  {each}" for each in finding.trained)
    yield f"Held back: {held_back}:"
    yield from (f"  {each}" for each in finding.held_back)
    if not finding.is_confirmed:
        yield "The held-back arrivals do not confirm the gain."


def _sign(gain: Gain) -> int:
    """-1 where less was needed, 1 where more, 0 where the interval contains 0."""
    mean, margin = gain.difference.mean, gain.difference.margin or 0.0
    return (mean > margin) - (mean < -margin)
