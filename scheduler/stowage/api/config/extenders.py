"""The configured extenders: which are called for a pod, and in which order.

An extender is a program that filters and scores nodes for a pod, or binds it, over HTTP. This
module only reads the configuration; the operator calls extenders.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from stowage.api.config.types import Extender
from stowage.api.objects.pod import PodSpec

#: The plugin name of rejections by extenders; ``framework.ExtenderName`` of v1.36.
EXTENDER_PLUGIN = "Extender"
DEFAULT_MAX_CONSULTATIONS = 16


def is_interested(extender: Extender, spec: PodSpec) -> bool:
    """Whether an extender is called for a pod (``HTTPExtender.IsInterested`` of v1.36).

    An extender without ``managedResources`` is called for every pod. Otherwise a container or init
    container must request or limit one of them.
    """
    if not extender.managed_resources:
        return True
    managed = {resource.name for resource in extender.managed_resources}
    return any(
        not managed.isdisjoint(container.resources.requests)
        or not managed.isdisjoint(container.resources.limits)
        for container in (*spec.containers, *spec.init_containers)
    )


class BindingExtender(msgspec.Struct, frozen=True):
    """An extender that binds a pod; if an ignorable one fails, the Bind plugins bind the pod."""

    index: int
    is_ignorable: bool


class Extenders:
    """The extenders of a configuration, identified by their index in it.

    Args:
        configured: The extenders, in the order of the configuration.
        max_consultations: For how many pods extenders are called at a time.
    """

    def __init__(
        self,
        configured: Iterable[Extender] = (),
        max_consultations: int = DEFAULT_MAX_CONSULTATIONS,
    ) -> None:
        self.configured: Sequence[Extender] = tuple(configured)
        self.max_consultations = max_consultations
        # Ignorable extenders come last and get the shortest list of nodes, as in kube-scheduler.
        self._order = sorted(
            range(len(self.configured)), key=lambda index: self.configured[index].ignorable
        )

    def __bool__(self) -> bool:
        return bool(self.configured)

    def to_consult(self, spec: PodSpec) -> tuple[int, ...]:
        """The extenders that filter or score nodes for a pod, in the order of the calls."""
        return tuple(
            index
            for index in self._order
            if self.configured[index].filter_verb or self.configured[index].prioritize_verb
            if is_interested(self.configured[index], spec)
        )

    def to_review(self, spec: PodSpec) -> tuple[int, ...]:
        """The extenders that process preemption for a pod, in the order of the calls."""
        return tuple(
            index
            for index in self._order
            if self.configured[index].preempt_verb
            if is_interested(self.configured[index], spec)
        )

    @property
    def need_whole_victims(self) -> bool:
        """Whether an extender is sent whole victims instead of their UIDs."""
        return any(
            not extender.node_cache_capable and extender.preempt_verb
            for extender in self.configured
        )

    @property
    def need_whole_nodes(self) -> bool:
        """Whether an extender is sent whole nodes instead of their names."""
        return any(
            not extender.node_cache_capable and (extender.filter_verb or extender.prioritize_verb)
            for extender in self.configured
        )

    @property
    def judge_nodes(self) -> bool:
        """Whether an extender filters or scores nodes, for any pod."""
        return any(each.filter_verb or each.prioritize_verb for each in self.configured)

    def any_filters(self, indices: Iterable[int]) -> bool:
        """Whether one of these extenders filters nodes."""
        return any(self.configured[index].filter_verb for index in indices)

    def binder_of(self, spec: PodSpec) -> BindingExtender | None:
        """The extender that binds a pod instead of the Bind plugins; None if there is none."""
        for index, extender in enumerate(self.configured):
            if extender.bind_verb and is_interested(extender, spec):
                return BindingExtender(index, extender.ignorable)
        return None

    def ignored_resources(self) -> tuple[str, ...]:
        """Managed resources with ``ignoredByScheduler``, which NodeResourcesFit ignores."""
        return tuple(
            resource.name
            for extender in self.configured
            for resource in extender.managed_resources
            if resource.ignored_by_scheduler
        )


NO_EXTENDERS = Extenders()
