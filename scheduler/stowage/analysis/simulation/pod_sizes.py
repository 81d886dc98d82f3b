"""The requests of the pods of a workload file, drawn from distributions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import repeat

import numpy as np
from msgspec.structs import replace

from stowage.analysis.simulation.distributions import Distribution
from stowage.analysis.simulation.random_streams import random_stream
from stowage.analysis.simulation.workload_spec import PodSource
from stowage.api.objects.pod import Container, Pod, PodSpec
from stowage.api.values.resource_names import CPU, MEMORY

_MIB = 2**20
_BATCH = 1024
_MAX_KNOWN_SIZES = 4096


def pod_specs(source: PodSource, pod: Pod, seed: int) -> Iterator[PodSpec]:
    """The specs of pods, with the drawn requests of their first container."""
    if not source.requests:
        return repeat(pod.spec)
    draws = [
        _amounts(name, each, random_stream(seed, "requests", source.name, name))
        for name, each in source.requests.items()
    ]
    return _Sizes(pod.spec, tuple(source.requests)).specs(zip(*draws, strict=True))


def _amounts(resource: str, sizes: Distribution, generator: np.random.Generator) -> Iterator[int]:
    """Drawn amounts: thousandths of a cpu; memory in bytes, whole MiB; others in whole units."""
    step = _MIB if resource == MEMORY else 1
    while True:
        drawn = np.round(sizes.draw(generator, _BATCH) / step) * step
        yield from map(int, drawn.tolist())


class _Sizes:
    """Makes specs with other requests; pods with equal requests share their spec."""

    def __init__(self, spec: PodSpec, resources: tuple[str, ...]) -> None:
        self._spec = spec
        self._resources = resources
        self._known: dict[tuple[int, ...], PodSpec] = {}

    @cached_property
    def _container(self) -> Container:
        return self._spec.containers[0]

    def specs(self, sizes: Iterator[tuple[int, ...]]) -> Iterator[PodSpec]:
        for amounts in sizes:
            spec = self._known.get(amounts)
            if spec is None:
                if len(self._known) >= _MAX_KNOWN_SIZES:
                    self._known.clear()
                spec = self._known[amounts] = self._sized(amounts)
            yield spec

    def _sized(self, amounts: tuple[int, ...]) -> PodSpec:
        container = self._container
        requests = dict(container.resources.requests)
        for resource, amount in zip(self._resources, amounts, strict=True):
            requests[resource] = f"{amount}m" if resource == CPU else amount
        resources = replace(container.resources, requests=requests)
        sized = replace(container, resources=resources)
        return replace(self._spec, containers=(sized, *self._spec.containers[1:]))
