"""From the flags of ``stowage run`` to the configuration and the options of the process."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from msgspec.structs import replace

from stowage.api.config.feature_gates import parse_feature_gates
from stowage.api.config.loading import KubeSchedulerConfiguration
from stowage.cli import composition
from stowage.cli.flag_overrides import overrides_of
from stowage.cli.max_volumes import max_volumes
from stowage.cli.run_flags import (
    ApiServerFlags,
    DecisionLogFlags,
    LeaderElectionFlags,
    LoggingFlags,
    OtherFlags,
    RecordingFlags,
    SchedulingFlags,
)
from stowage.cli.serving_flags import ServingFlags
from stowage.cli.serving_options import make_serving_options
from stowage.operator.run_options import RunOptions


class FlagGroups(NamedTuple):
    """The flags that were given, by group."""

    api_server: ApiServerFlags
    scheduling: SchedulingFlags
    serving: ServingFlags
    election: LeaderElectionFlags
    other: OtherFlags
    decisions: DecisionLogFlags
    logs: LoggingFlags
    recording: RecordingFlags


def start_options(
    groups: FlagGroups, shown: Mapping[str, str]
) -> tuple[KubeSchedulerConfiguration, RunOptions]:
    """Read the configuration, set up logging, and make the options of the process.

    Args:
        groups: The flags.
        shown: The same flags, as ``/flagz`` shows them.

    Raises:
        InvalidConfiguration: The configuration or a flag is invalid.
    """
    api_server, scheduling, other = groups.api_server, groups.scheduling, groups.other
    gates = parse_feature_gates(scheduling.feature_gates or [])
    configuration, live = composition.read_start_configuration(
        scheduling,
        overrides_of(api_server, groups.election, other),
        max_volumes(os.environ),
        api_server,
    )
    composition.set_up_logging(groups.logs.verbosity, groups.logs.logging_format)
    max_in_unschedulable_s = scheduling.max_in_unschedulable_s
    options = composition.run_options(
        configuration,
        api_server.kubeconfig,
        make_serving_options(groups.serving),
        max_in_unschedulable_s,
        live,
        gates,
    )
    options = replace(
        options,
        master=api_server.master,
        flags=shown,
        disabled_metrics=other.disabled_metric_names,
        recording=composition.recording_options(groups.recording, max_in_unschedulable_s, gates),
        decision_log=composition.decision_log_options(groups.decisions),
    )
    return configuration, options
