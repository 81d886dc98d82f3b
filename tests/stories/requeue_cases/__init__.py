"""The table of requeue cases by plugin; each names an event and the pods that it requeues."""

from tests.stories.requeue_cases.gates import CLAIM_CASES, FEATURE_CASES, GATE_CASES
from tests.stories.requeue_cases.inter_pod_affinity import AFFINITY_CASES, ANTI_AFFINITY_CASES
from tests.stories.requeue_cases.legacy_volume_limits import LEGACY_LIMIT_CASES
from tests.stories.requeue_cases.node_affinity import NODE_AFFINITY_CASES
from tests.stories.requeue_cases.pod_topology_spread import SPREAD_BY_NODES, SPREAD_BY_PODS
from tests.stories.requeue_cases.ports import PORT_CASES
from tests.stories.requeue_cases.preemption import PREEMPTION_CASES
from tests.stories.requeue_cases.resources import RESOURCE_CASES
from tests.stories.requeue_cases.several_plugins import SEVERAL_PLUGINS_CASES
from tests.stories.requeue_cases.taints import CORDON_CASES, TAINT_CASES
from tests.stories.requeue_cases.volumes import (
    BINDING_CASES,
    LIMIT_CASES,
    RESTRICTION_CASES,
    ZONE_CASES,
)

CASES = (
    *TAINT_CASES,
    *CORDON_CASES,
    *NODE_AFFINITY_CASES,
    *RESOURCE_CASES,
    *PORT_CASES,
    *ANTI_AFFINITY_CASES,
    *AFFINITY_CASES,
    *SPREAD_BY_PODS,
    *SPREAD_BY_NODES,
    *GATE_CASES,
    *FEATURE_CASES,
    *CLAIM_CASES,
    *SEVERAL_PLUGINS_CASES,
    *BINDING_CASES,
    *ZONE_CASES,
    *RESTRICTION_CASES,
    *LIMIT_CASES,
    *LEGACY_LIMIT_CASES,
    *PREEMPTION_CASES,
)
