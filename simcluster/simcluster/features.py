"""Feature gates and alpha versions of the API server, in the syntax of kube-apiserver's flags."""

from collections.abc import Iterator, Sequence

from simcluster.kinds.resources import POD_GROUP_KINDS, Resource
from stowage.api.config.errors import ConfigError, InvalidConfiguration
from stowage.api.config.feature_gates import GO_BOOLEANS, FeatureGates, parse_feature_gates

GENERIC_WORKLOAD = "GenericWorkload"
TOPOLOGY = "TopologyAwareWorkloadScheduling"
PREEMPTION = "WorkloadAwarePreemption"
RESOURCE_CLAIMS = "DRAWorkloadResourceClaims"
POD_GROUP_VERSION = POD_GROUP_KINDS[0].api_version
_FLAG = "--runtime-config"
_ALL = ("api/all", "api/alpha")


def read_features(feature_gates: Sequence[str], runtime_config: Sequence[str]) -> FeatureGates:
    """The feature gates that the values of ``--feature-gates`` and ``--runtime-config`` set.

    The kinds of GenericWorkload need both the gate and their version. kube-apiserver never gets
    ready with the gate alone; here it is refused.

    Raises:
        InvalidConfiguration: names every wrong part.
    """
    gates = parse_feature_gates(feature_gates)
    pairs = [pair.strip() for value in runtime_config for pair in value.split(",") if pair.strip()]
    if found := list(_errors(pairs)):
        raise InvalidConfiguration(found)
    versions = dict(map(_parsed, pairs))
    is_on = versions.get(POD_GROUP_VERSION, any(versions.get(each, False) for each in _ALL))
    if gates.enabled(GENERIC_WORKLOAD) and not is_on:
        wanted = f"{POD_GROUP_VERSION}=true, which {GENERIC_WORKLOAD} needs"
        raise InvalidConfiguration([ConfigError(_FLAG, ",".join(runtime_config), wanted)])
    return gates


def _parsed(pair: str) -> tuple[str, bool]:
    version, _, value = pair.partition("=")
    return version, GO_BOOLEANS[value or "true"]


def _errors(pairs: Sequence[str]) -> Iterator[ConfigError]:
    known = (POD_GROUP_VERSION, *_ALL)
    for pair in pairs:
        version, _, value = pair.partition("=")
        if version not in known or (value or "true") not in GO_BOOLEANS:
            yield ConfigError(_FLAG, pair, f"one of {', '.join(known)}, with =true or =false")


def alpha_kinds(gates: FeatureGates) -> Sequence[Resource]:
    """The kinds that are served because of feature gates."""
    return POD_GROUP_KINDS if gates.enabled(GENERIC_WORKLOAD) else ()
