"""Which pods need nothing but a node, and what the scheduler stores of them as they are made again.

Such a pod has no volumes, claims and pod group. So neither the queue nor the binding changes the
node that Filter and Score choose for it.
"""

from __future__ import annotations

from msgspec.structs import replace

from stowage.analysis.virtual_cluster import pod_made_again, uid_made_again
from stowage.api.decoding.errors import InvalidObject
from stowage.api.objects.pod import Pod
from stowage.engine.state.engine_state import EngineState
from stowage.framework import Framework
from stowage.framework.profile.points import ExtensionPoint
from stowage.framework.profile.profile import DEFAULT_MULTI_POINT
from stowage.state.pods.pod_class import PodClass
from stowage.state.pods.pod_info import PodInfo, make_pod_info

#: Their Reserve and Permit do nothing for a pod without volumes, claims and pod group.
KNOWN_PLUGINS = frozenset(name for name, _ in DEFAULT_MULTI_POINT)
_RUNNING = "Running"


class MovablePods:
    """Tells which placed pods need nothing but a node when their controllers make them again.

    Most of it is decided once per equivalence class. The profiles, and the device classes that
    serve extended resources, must not change.

    Args:
        state: The engine's state, with the pods on their nodes.
    """

    def __init__(self, state: EngineState) -> None:
        self._state = state
        self._deciding = {
            name: framework
            for name, framework in state.frameworks.items()
            if not state.extenders and framework.rates_nodes and _asks_only_known_plugins(framework)
        }
        self._made: dict[int, PodClass | None] = {}

    def info_of(self, pod: Pod, known: PodInfo) -> PodInfo | None:
        """The pod that replaces `pod`, and preempts none; None if it needs more than a node.

        Args:
            pod: A pod on its node.
            known: What the scheduler stores of it.
        """
        if known.volumes or known.group:
            return None
        made_class = self._class_of(known, pod)
        if made_class is None:
            return None
        info = PodInfo(
            uid_made_again(known.uid),
            known.namespace,
            known.name,
            "",
            made_class,
            creation_timestamp=known.creation_timestamp,
            generation=known.generation,
            reserved=known.reserved,
        )
        gating = self._deciding[info.scheduler_name].gating
        return info if gating.run_again(info).is_success else None

    def _class_of(self, known: PodInfo, pod: Pod) -> PodClass | None:
        affinity = pod.spec.affinity
        if known.phase == _RUNNING and affinity is not None and affinity.node_affinity is not None:
            return self._judge(pod)  # the class of a running pod is without its node affinity
        class_id = known.pod_class.id
        if class_id not in self._made:
            self._made[class_id] = self._judge(pod)
        return self._made[class_id]

    def _judge(self, pod: Pod) -> PodClass | None:
        """The class of the pod made again; None if the pods of the class need more than a node."""
        framework = self._deciding.get(pod.spec.scheduler_name)
        if framework is None:
            return None
        cache = self._state.cache
        try:
            info = make_pod_info(preempting_none(pod_made_again(pod)), cache.classes)
        except InvalidObject:
            return None  # the engine reports it
        if info.spec.resource_claims or cache.snapshot().devices.serves(info.requests):
            return None
        return info.pod_class if framework.run_pre_enqueue(info).is_success else None


def _asks_only_known_plugins(framework: Framework) -> bool:
    """Whether no plugin of others takes part after Score."""
    plugins = framework.profile.plugins
    asked = (*plugins[ExtensionPoint.RESERVE], *plugins[ExtensionPoint.PERMIT])
    return KNOWN_PLUGINS.issuperset(each.name for each in asked)


def preempting_none(pod: Pod, node_name: str | None = None) -> Pod:
    """The pod with the preemption policy ``Never``, and another node if one is named."""
    spec = pod.spec
    node_name = spec.node_name if node_name is None else node_name
    return replace(pod, spec=replace(spec, preemption_policy="Never", node_name=node_name))
