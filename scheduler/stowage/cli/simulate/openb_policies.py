"""The policies of ``stowage simulate openb``: those published, and configurations from files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from stowage.analysis.simulation.openb.experiment import SCHEDULER_NAME, OpenbPolicy
from stowage.analysis.simulation.openb.policies import POLICIES, configuration_of
from stowage.analysis.simulation.openb.trace import OpenbTrace
from stowage.analysis.simulation.openb.typical_pods import TypicalPod, typical_pods
from stowage.api.config.loading import (
    ConfigError,
    InvalidConfiguration,
    load_configuration,
    to_builtins,
)
from stowage.cli.config_file import read_configuration
from stowage.cli.simulate.policies import ConfiguredPolicy

ALL = "all"
_FLAG = "--policies"
PACKAGE = "the package in examples/gpushare, installed: python -m pip install ./examples/gpushare"


class PublishedPolicy(msgspec.Struct, frozen=True):
    """One of the six published policies.

    Attributes:
        name: One of `POLICIES`.
    """

    name: str

    @property
    def inputs(self) -> object:
        """See `OpenbPolicy`."""
        return self.name

    def for_run(self, typical: tuple[TypicalPod, ...], seed: int) -> ConfiguredPolicy:
        """See `OpenbPolicy`."""
        configuration = load_configuration(configuration_of(self.name, typical, seed))
        return ConfiguredPolicy(self.name, configuration)


class FixedPolicy(msgspec.Struct, frozen=True):
    """A configuration that is the same whatever the trace and the seed.

    Attributes:
        policy: The configuration and its name.
    """

    policy: ConfiguredPolicy

    @property
    def name(self) -> str:
        """See `OpenbPolicy`."""
        return self.policy.name

    @property
    def inputs(self) -> object:
        """See `OpenbPolicy`."""
        return to_builtins(self.policy.configuration)

    def for_run(self, typical: tuple[TypicalPod, ...], seed: int) -> ConfiguredPolicy:
        """See `OpenbPolicy`."""
        del typical, seed
        return self.policy


def read_openb_policies(text: str, traces: Sequence[OpenbTrace]) -> list[OpenbPolicy]:
    """The policies of a list; all of them have made their plugins once.

    Args:
        text: ``all``, names of published policies, and files, separated by commas.
        traces: The traces that they will be used on.

    Raises:
        InvalidConfiguration: A name is unknown or occurs twice, a file is invalid, or a plugin
            does not load.
    """
    policies: list[OpenbPolicy] = []
    for part in dict.fromkeys(filter(None, map(str.strip, text.split(",")))):
        policies += map(PublishedPolicy, POLICIES) if part == ALL else [_policy(part)]
    names = [policy.name for policy in policies]
    repeated = [name for name in names if names.count(name) > 1]
    if repeated or not names:
        expected = f"{ALL}, names of {', '.join(POLICIES)}, or files, each once"
        raise InvalidConfiguration([ConfigError(_FLAG, repeated[0] if repeated else "", expected)])
    for policy in policies:
        for trace in traces:
            _check(policy, trace)
    return policies


def _policy(part: str) -> OpenbPolicy:
    if part in POLICIES:
        return PublishedPolicy(part)
    file = Path(part)
    if not file.suffix and not file.exists():
        expected = f"{ALL}, {', '.join(POLICIES)}, or a file"
        raise InvalidConfiguration([ConfigError(_FLAG, part, expected)])
    try:
        return FixedPolicy(ConfiguredPolicy(file.stem, read_configuration(file)))
    except InvalidConfiguration as invalid:
        raise InvalidConfiguration(
            each if each.path.startswith("--") else each.under(part) for each in invalid.errors
        ) from invalid


def _check(policy: OpenbPolicy, trace: OpenbTrace) -> None:
    """Make the engine of a policy, to see its errors before the first experiment.

    Raises:
        InvalidConfiguration: A plugin is missing, or its arguments are invalid.
    """
    try:
        policy.for_run(typical_pods(trace), 0).make_engine(
            {SCHEDULER_NAME}, int, lambda _event: None
        )
    except InvalidConfiguration as invalid:
        if isinstance(policy, PublishedPolicy):
            hint = ConfigError(_FLAG, policy.name, PACKAGE)
            raise InvalidConfiguration([hint, *invalid.errors]) from invalid
        raise
