"""The table of enqueue stories, split by plugin: what happens, and who is tried again for it."""

from tests.stories.requeue_cases.gates import CLAIM_STORIES, FEATURE_STORIES, GATE_STORIES
from tests.stories.requeue_cases.inter_pod_affinity import AFFINITY_STORIES, ANTI_AFFINITY_STORIES
from tests.stories.requeue_cases.node_affinity import NODE_AFFINITY_STORIES
from tests.stories.requeue_cases.pod_topology_spread import SPREAD_BY_NODES, SPREAD_BY_PODS
from tests.stories.requeue_cases.ports import PORT_STORIES
from tests.stories.requeue_cases.preemption import PREEMPTION_STORIES
from tests.stories.requeue_cases.resources import RESOURCE_STORIES
from tests.stories.requeue_cases.several_plugins import SEVERAL_PLUGINS_STORIES
from tests.stories.requeue_cases.taints import CORDON_STORIES, TAINT_STORIES
from tests.stories.requeue_cases.volumes import (
    BINDING_STORIES,
    LIMIT_STORIES,
    RESTRICTION_STORIES,
    ZONE_STORIES,
)

STORIES = (
    *TAINT_STORIES,
    *CORDON_STORIES,
    *NODE_AFFINITY_STORIES,
    *RESOURCE_STORIES,
    *PORT_STORIES,
    *ANTI_AFFINITY_STORIES,
    *AFFINITY_STORIES,
    *SPREAD_BY_PODS,
    *SPREAD_BY_NODES,
    *GATE_STORIES,
    *FEATURE_STORIES,
    *CLAIM_STORIES,
    *SEVERAL_PLUGINS_STORIES,
    *BINDING_STORIES,
    *ZONE_STORIES,
    *RESTRICTION_STORIES,
    *LIMIT_STORIES,
    *PREEMPTION_STORIES,
)
