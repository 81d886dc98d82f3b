"""Which scheduler extenders have a say about a pod, in which order.

An extender is a program of its own, asked over HTTP to filter and rate nodes for a pod or to bind
it. Here is only what the configuration says; asking them is the shell's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from stowage.api.config.types import Extender
from stowage.api.objects.pod import PodSpec

#: Who rejected a pod that an extender kept off its nodes; ``framework.ExtenderName`` of v1.36.
EXTENDER_PLUGIN = "Extender"
DEFAULT_MAX_CONSULTATIONS = 16


def is_interested(extender: Extender, spec: PodSpec) -> bool:
    """Whether an extender wants to see a pod (``HTTPExtender.IsInterested`` of v1.36).

    One without ``managedResources`` wants all; else some container or init container has to name
    one of them, in its requests or limits.
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
    """An extender that binds a pod; an ignorable one may fail, the Bind plugins bind then."""

    index: int
    is_ignorable: bool


class Extenders:
    """The extenders of a configuration, named by their index in it.

    Args:
        configured: In the configuration's order.
        max_consultations: How many pods may be with them at a time.
    """

    def __init__(
        self,
        configured: Iterable[Extender] = (),
        max_consultations: int = DEFAULT_MAX_CONSULTATIONS,
    ) -> None:
        self.configured: Sequence[Extender] = tuple(configured)
        self.max_consultations = max_consultations
        # Upstream puts those that may be ignored last, so that they see the shortest list.
        self._order = sorted(
            range(len(self.configured)), key=lambda index: self.configured[index].ignorable
        )

    def __bool__(self) -> bool:
        return bool(self.configured)

    def to_consult(self, spec: PodSpec) -> tuple[int, ...]:
        """Those that filter or rate nodes for such a pod, in the order in which to ask them."""
        return tuple(
            index
            for index in self._order
            if self.configured[index].filter_verb or self.configured[index].prioritize_verb
            if is_interested(self.configured[index], spec)
        )

    def to_review(self, spec: PodSpec) -> tuple[int, ...]:
        """Those that have a say about the victims of such a pod, in the order in which to ask."""
        return tuple(
            index
            for index in self._order
            if self.configured[index].preempt_verb
            if is_interested(self.configured[index], spec)
        )

    @property
    def want_victims(self) -> bool:
        """Whether one of them is sent whole victims rather than their UIDs."""
        return any(
            not extender.node_cache_capable and extender.preempt_verb
            for extender in self.configured
        )

    @property
    def want_nodes(self) -> bool:
        """Whether one of them is sent whole nodes rather than their names."""
        return any(
            not extender.node_cache_capable and (extender.filter_verb or extender.prioritize_verb)
            for extender in self.configured
        )

    def any_filters(self, indices: Iterable[int]) -> bool:
        """Whether one of these may reject nodes."""
        return any(self.configured[index].filter_verb for index in indices)

    def binder_of(self, spec: PodSpec) -> BindingExtender | None:
        """The one that binds such a pod in place of the Bind plugins."""
        for index, extender in enumerate(self.configured):
            if extender.bind_verb and is_interested(extender, spec):
                return BindingExtender(index, extender.ignorable)
        return None

    def ignored_resources(self) -> tuple[str, ...]:
        """Managed resources with ``ignoredByScheduler``: NodeResourcesFit leaves them alone."""
        return tuple(
            resource.name
            for extender in self.configured
            for resource in extender.managed_resources
            if resource.ignored_by_scheduler
        )


NO_EXTENDERS = Extenders()
