"""Flags of the commands that search, and the present configuration."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from stowage.cli.config_file import parse_configuration, parse_document, read_text
from stowage.cli.flag_groups import FlagGroup, Panel
from stowage.cli.simulate.experiment_flags import ReportFile, RunningFlags
from stowage.cli.tune.task import TuningOptions

SEARCH = Panel("Search")

Trials: TypeAlias = Annotated[int, SEARCH.option(min=1, help="Configurations to try.")]
TrialSeeds: TypeAlias = Annotated[str, SEARCH.option(metavar="SEEDS", help="Seeds of each trial.")]


class SearchFlags(FlagGroup, frozen=True):
    """The flags about the search, beside its objectives."""

    trials: Trials = 64
    seeds: TrialSeeds = "1-3"
    held_back: Annotated[
        float,
        SEARCH.option(
            min=0.05,
            max=0.95,
            help="Share of the time of each workload, at its end, that the search does not see. "
            "The gain is measured there again, with other seeds.",
        ),
    ] = 0.3
    max_weight: Annotated[
        int, SEARCH.option(min=1, max=100, help="Largest weight; 0 disables a plugin.")
    ] = 10
    storage: Annotated[
        Path | None,
        SEARCH.option(
            dir_okay=False,
            metavar="FILE",
            help="Keep the trials in this file; an interrupted search goes on from it.",
        ),
    ] = None

    def options(self, objectives: Sequence[str], running: RunningFlags) -> TuningOptions:
        """How to search.

        Raises:
            typer.BadParameter: The flags contradict each other.
        """
        pool = running.pool_options()
        return TuningOptions(objectives, self.trials, self.max_weight, self.storage, pool)


class AnswerFiles(FlagGroup, frozen=True):
    """The flags that say where the answer is written."""

    write: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False,
            metavar="FILE",
            help="Where the configuration is written. Default: standard output.",
        ),
    ] = None
    report: ReportFile = None


def written_configuration(config: Path) -> dict[str, Any]:
    """The present configuration as it is written.

    Raises:
        InvalidConfiguration: It cannot be read, or is invalid.
    """
    text = read_text(config, "--config")
    parse_configuration(text, "--config", str(config))
    document: dict[str, Any] = parse_document(text, "--config", str(config)).builtins
    return document
