"""The types of kubescheduler.config.k8s.io/v1 and their defaults (v1.36).

Fields that steer something Stowage does not have are kept so that a kube-scheduler configuration
can be used as it is: ``enableContentionProfiling`` (there are no locks to profile), and the content
types of ``clientConnection`` (JSON is spoken always). ``enableProfiling`` is off unless it is set,
unlike in kube-scheduler. ``parallelism`` limits how many pods may be with extenders at a time;
the engine itself has nothing to parallelise.

``tracing`` is a field that kube-scheduler does not have. It is the ``TracingConfiguration`` of
component-base, which the kubelet has in its configuration and kube-apiserver in a file. So are
``tieBreaking``, ``alwaysCheckAllPredicates`` and ``disablePreemption`` of a profile, and the value
``adaptive`` of ``percentageOfNodesToScore``.
"""

from typing import Any, Literal, TypeAlias

import msgspec

from stowage.api.values.duration import Duration

API_VERSION = "kubescheduler.config.k8s.io/v1"
KIND = "KubeSchedulerConfiguration"
DEFAULT_SCHEDULER_NAME = "stowage"
#: The largest weight and maxSkew; these are ``int32`` in kube-scheduler.
INT32_MAX = 2**31 - 1

#: A share of the nodes; ``adaptive`` is the share that 0 stands for in kube-scheduler.
Percentage: TypeAlias = int | Literal["adaptive"]
TieBreakingType: TypeAlias = Literal["Random", "RoundRobin", "FixedOrder"]


class ConfigStruct(msgspec.Struct, frozen=True, rename="camel"):
    """Base of the configuration's types: frozen, camelCase in files."""


class PluginSetting(ConfigStruct, frozen=True, omit_defaults=True):
    """A plugin; the weight applies to Score, absent or 0 stands for the plugin's default."""

    name: str = ""
    weight: int | None = None


class PluginSet(ConfigStruct, frozen=True, omit_defaults=True):
    """Plugins enabled and disabled at an extension point; ``*`` disables all defaults."""

    enabled: tuple[PluginSetting, ...] = ()
    disabled: tuple[PluginSetting, ...] = ()


class PluginSets(ConfigStruct, frozen=True, omit_defaults=True):
    """A plugin set per extension point; ``multi_point`` applies to all points of a plugin."""

    multi_point: PluginSet = PluginSet()
    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()


class PluginConfig(ConfigStruct, frozen=True, omit_defaults=True):
    """Arguments of a plugin as written; the args type of the plugin decodes them."""

    name: str = ""
    args: dict[str, Any] = msgspec.field(default_factory=dict)


class TieBreakingPlugin(ConfigStruct, frozen=True, omit_defaults=True):
    """A Score plugin that is asked about tied nodes; without `args` it has those of the profile."""

    name: str = ""
    args: dict[str, Any] | None = None


class TieBreaking(ConfigStruct, frozen=True, omit_defaults=True):
    """Which of several nodes with the highest total a pod goes to.

    Attributes:
        type: Decides among the nodes that the plugins leave.
        seed: ``FixedOrder`` draws the order of the nodes from it.
        score_plugins: Asked first, one after the other, each about the nodes that are still tied.
    """

    type: TieBreakingType = "Random"
    seed: int = 0
    score_plugins: tuple[TieBreakingPlugin, ...] = ()


class KubeSchedulerProfile(ConfigStruct, frozen=True, omit_defaults=True):
    """How the pods of one ``spec.schedulerName`` are scheduled."""

    scheduler_name: str = ""
    percentage_of_nodes_to_score: Percentage | None = None
    plugins: PluginSets = PluginSets()
    plugin_config: tuple[PluginConfig, ...] = ()
    tie_breaking: TieBreaking = TieBreaking()
    always_check_all_predicates: bool = False
    disable_preemption: bool = False


class LeaderElectionConfiguration(ConfigStruct, frozen=True):
    """Leader election by a Lease."""

    leader_elect: bool = True
    lease_duration: Duration = Duration(15)
    renew_deadline: Duration = Duration(10)
    retry_period: Duration = Duration(2)
    resource_lock: str = "leases"
    resource_name: str = "stowage"
    resource_namespace: str = "kube-system"


class ClientConnectionConfiguration(ConfigStruct, frozen=True):
    """The client of the API server; ``qps`` 0 or less sets no limit."""

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = "application/json"
    qps: float = 0.0
    burst: int = 100


class TracingConfiguration(ConfigStruct, frozen=True):
    """OpenTelemetry traces, as in component-base; ``sampling_rate_per_million`` 0 makes none."""

    endpoint: str = "localhost:4317"
    sampling_rate_per_million: int = 0


class ExtenderTLSConfig(ConfigStruct, frozen=True, omit_defaults=True):
    """TLS settings of the connection to an extender."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = b""
    key_data: bytes = b""
    ca_data: bytes = b""

    def __repr__(self) -> str:
        """Without the private key: the text may be logged."""
        return f"ExtenderTLSConfig(server_name={self.server_name!r}, insecure={self.insecure})"


class ExtenderManagedResource(ConfigStruct, frozen=True, omit_defaults=True):
    """An extended resource; the extender is called for pods that request it."""

    name: str = ""
    ignored_by_scheduler: bool = False


class Extender(ConfigStruct, frozen=True, omit_defaults=True):
    """A scheduler extender, called over HTTP."""

    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: int = 0
    bind_verb: str = ""
    enable_https: bool = msgspec.field(default=False, name="enableHTTPS")
    tls_config: ExtenderTLSConfig | None = None
    http_timeout: Duration = Duration(5)
    node_cache_capable: bool = False
    managed_resources: tuple[ExtenderManagedResource, ...] = ()
    ignorable: bool = False


class KubeSchedulerConfiguration(ConfigStruct, frozen=True):
    """A KubeSchedulerConfiguration; see `stowage.api.config.loading.load_configuration`."""

    api_version: str = API_VERSION
    kind: str = KIND
    parallelism: int = 16
    leader_election: LeaderElectionConfiguration = LeaderElectionConfiguration()
    client_connection: ClientConnectionConfiguration = ClientConnectionConfiguration()
    enable_profiling: bool = False
    enable_contention_profiling: bool = True
    percentage_of_nodes_to_score: Percentage = 0
    pod_initial_backoff_seconds: int = 1
    pod_max_backoff_seconds: int = 10
    delay_cache_until_active: bool = False
    profiles: tuple[KubeSchedulerProfile, ...] = (
        KubeSchedulerProfile(scheduler_name=DEFAULT_SCHEDULER_NAME),
    )
    extenders: tuple[Extender, ...] = ()
    tracing: TracingConfiguration = TracingConfiguration()


class UtilizationShapePoint(ConfigStruct, frozen=True):
    """A point of a function from utilization in percent to a score from 0 to 10."""

    utilization: int = 0
    score: int = 0
