"""Validation of a configuration: the rules of kube-scheduler v1.36, and unsupported fields.

Plugin names and arguments are validated when a profile is built, where the plugins are known.
"""

from collections.abc import Iterator

import msgspec

from stowage.api.config.errors import ConfigError
from stowage.api.config.extender_validation import extender_errors
from stowage.api.config.types import (
    API_VERSION,
    KIND,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    LeaderElectionConfiguration,
    Percentage,
    PluginSet,
    TracingConfiguration,
)

REMOVED_PLUGINS = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})
"""Plugins that v1 of the configuration does not allow (``invalidPluginsByVersion``)."""

MAX_PROFILES = 32
"""kube-scheduler has no limit. Each takes two milliseconds when the ConfigMap changes, during which
nothing is scheduled."""

_JITTER_FACTOR = 1.2
"""A retry period of kube-scheduler's candidates is up to so many times as long (client-go)."""

_TRACING_SCHEMES = frozenset({"", "dns:", "unix:", "unix-abstract:"})


def configuration_errors(configuration: KubeSchedulerConfiguration) -> list[ConfigError]:
    """All errors in a decoded configuration (``ValidateKubeSchedulerConfiguration``)."""
    return [
        *_general_errors(configuration),
        *_leader_election_errors(configuration.leader_election),
        *_profiles_errors(configuration.profiles),
        *extender_errors(configuration.extenders),
        *_tracing_errors(configuration.tracing),
    ]


def _general_errors(configuration: KubeSchedulerConfiguration) -> Iterator[ConfigError]:
    if configuration.api_version != API_VERSION:
        yield ConfigError("apiVersion", configuration.api_version, API_VERSION)
    if configuration.kind != KIND:
        yield ConfigError("kind", configuration.kind, KIND)
    if configuration.parallelism <= 0:
        yield ConfigError("parallelism", configuration.parallelism, "greater than 0")
    if configuration.client_connection.burst < 0:
        burst = configuration.client_connection.burst
        yield ConfigError("clientConnection.burst", burst, "0 or more")
    yield from _percentage_errors("", configuration.percentage_of_nodes_to_score)
    yield from _backoff_errors(configuration)


def _backoff_errors(configuration: KubeSchedulerConfiguration) -> Iterator[ConfigError]:
    initial = configuration.pod_initial_backoff_seconds
    maximum = configuration.pod_max_backoff_seconds
    if initial <= 0:
        yield ConfigError("podInitialBackoffSeconds", initial, "greater than 0")
    if maximum < initial:
        expectation = f"at least podInitialBackoffSeconds, {initial}"
        yield ConfigError("podMaxBackoffSeconds", maximum, expectation)


def _percentage_errors(prefix: str, percentage: Percentage | None) -> Iterator[ConfigError]:
    if isinstance(percentage, int) and not 0 <= percentage <= 100:
        yield ConfigError(f"{prefix}percentageOfNodesToScore", percentage, "0 to 100")


def _leader_election_errors(election: LeaderElectionConfiguration) -> Iterator[ConfigError]:
    if not election.leader_elect:
        return
    durations = {
        "leaseDuration": election.lease_duration,
        "renewDeadline": election.renew_deadline,
        "retryPeriod": election.retry_period,
    }
    for name, duration in durations.items():
        if duration <= 0:
            yield ConfigError(f"leaderElection.{name}", duration, "longer than 0s")
    if election.lease_duration <= election.renew_deadline:
        expectation = f"longer than renewDeadline, {election.renew_deadline}"
        yield ConfigError("leaderElection.leaseDuration", election.lease_duration, expectation)
    if election.renew_deadline <= election.retry_period:
        expectation = f"longer than retryPeriod, {election.retry_period}"
        yield ConfigError("leaderElection.renewDeadline", election.renew_deadline, expectation)
    elif _nanoseconds(election.renew_deadline) <= _JITTER_FACTOR * _nanoseconds(
        election.retry_period
    ):
        expectation = f"longer than {_JITTER_FACTOR} times retryPeriod, {election.retry_period}"
        yield ConfigError("leaderElection.renewDeadline", election.renew_deadline, expectation)
    if election.resource_lock != "leases":
        yield ConfigError("leaderElection.resourceLock", election.resource_lock, "leases")
    for name, text in {
        "resourceName": election.resource_name,
        "resourceNamespace": election.resource_namespace,
    }.items():
        if not text:
            yield ConfigError(f"leaderElection.{name}", text, "a name")


def _nanoseconds(duration: float) -> int:
    """As Go has it: 1.2 times 3 s is less than 3.6 s in seconds, but not in nanoseconds."""
    return round(duration * 1e9)


def _tracing_errors(tracing: TracingConfiguration) -> Iterator[ConfigError]:
    """``ValidateTracingConfiguration`` of component-base."""
    rate = tracing.sampling_rate_per_million
    if not 0 <= rate <= 1_000_000:
        yield ConfigError("tracing.samplingRatePerMillion", rate, "0 to 1000000")
    scheme, has_scheme, _ = tracing.endpoint.partition("//")
    if not tracing.endpoint or (has_scheme and scheme not in _TRACING_SCHEMES):
        expectation = "HOST:PORT of a collector, or a dns://, unix:// or unix-abstract:// name"
        yield ConfigError("tracing.endpoint", tracing.endpoint, expectation)


def _profiles_errors(profiles: tuple[KubeSchedulerProfile, ...]) -> Iterator[ConfigError]:
    if len(profiles) > MAX_PROFILES:
        yield ConfigError("profiles", len(profiles), f"at most {MAX_PROFILES}")
        return
    first_index: dict[str, int] = {}
    for index, profile in enumerate(profiles):
        path = f"profiles[{index}]"
        name = profile.scheduler_name
        if not name:
            yield ConfigError(f"{path}.schedulerName", name, "a name of its own")
        elif name in first_index:
            expectation = f"a name of its own, profiles[{first_index[name]}] has this one"
            yield ConfigError(f"{path}.schedulerName", name, expectation)
        first_index.setdefault(name, index)
        yield from _percentage_errors(f"{path}.", profile.percentage_of_nodes_to_score)
        yield from _plugin_errors(path, profile)
        yield from _plugin_config_errors(path, profile)
    yield from _queue_sort_errors(profiles)


def _plugin_errors(path: str, profile: KubeSchedulerProfile) -> Iterator[ConfigError]:
    for field in msgspec.structs.fields(profile.plugins):
        plugin_set: PluginSet = getattr(profile.plugins, field.name)
        point = f"{path}.plugins.{field.encode_name}"
        for which, settings in (("enabled", plugin_set.enabled), ("disabled", plugin_set.disabled)):
            for index, setting in enumerate(settings):
                if not setting.name:
                    yield ConfigError(f"{point}.{which}[{index}].name", "", "a plugin's name")
        for index, setting in enumerate(plugin_set.enabled):
            if setting.name in REMOVED_PLUGINS:
                yield _removed(f"{point}.enabled[{index}].name", setting.name)


def _plugin_config_errors(path: str, profile: KubeSchedulerProfile) -> Iterator[ConfigError]:
    seen: set[str] = set()
    for index, plugin in enumerate(profile.plugin_config):
        name_path = f"{path}.pluginConfig[{index}].name"
        if not plugin.name:
            yield ConfigError(name_path, plugin.name, "a plugin's name")
        elif plugin.name in seen:
            yield ConfigError(name_path, plugin.name, "one entry only")
        elif plugin.name in REMOVED_PLUGINS:
            yield _removed(name_path, plugin.name)
        seen.add(plugin.name)


def _removed(path: str, name: str) -> ConfigError:
    return ConfigError(path, name, "NodeVolumeLimits: this one was removed")


def _queue_sort_errors(profiles: tuple[KubeSchedulerProfile, ...]) -> Iterator[ConfigError]:
    """All profiles share one queue, so they must have the same QueueSort plugin."""
    first = profiles[0]
    enabled = first.plugins.queue_sort.enabled
    if len(enabled) > 1:
        names = ", ".join(setting.name for setting in enabled)
        yield ConfigError("profiles[0].plugins.queueSort.enabled", names, "one plugin")
    for index, profile in enumerate(profiles[1:], start=1):
        if profile.plugins.queue_sort != first.plugins.queue_sort:
            sets = msgspec.to_builtins(profile.plugins.queue_sort)
            expectation = "the same as in profiles[0]: there is one queue"
            yield ConfigError(f"profiles[{index}].plugins.queueSort", sets, expectation)
        elif enabled and _args(profile, enabled[0].name) != _args(first, enabled[0].name):
            args = _args(profile, enabled[0].name)
            expectation = f"the args {enabled[0].name} has in profiles[0]: there is one queue"
            yield ConfigError(f"profiles[{index}].pluginConfig", args, expectation)


def _args(profile: KubeSchedulerProfile, plugin_name: str) -> object:
    return next((entry.args for entry in profile.plugin_config if entry.name == plugin_name), None)
