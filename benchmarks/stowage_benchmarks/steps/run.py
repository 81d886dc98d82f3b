"""Measures shapes, each in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import msgspec

from stowage.operator.garbage_collection import raise_collection_thresholds
from stowage_benchmarks.steps.catalogue import SHAPES
from stowage_benchmarks.steps.meter import Step
from stowage_benchmarks.steps.shapes.shape import Size
from stowage_benchmarks.steps.shell import MeasuredShell


class ShapeResult(msgspec.Struct, frozen=True):
    """The longest step with one shape.

    Attributes:
        shape: The shape.
        step_ms: CPU milliseconds of the longest step.
        kind: The kind of the longest part of that step: an event, ``schedule``, the page of a list.
        part_ms: CPU milliseconds of that part.
        steps: Number of steps.
        bound: Number of pods bound.
    """

    shape: str
    step_ms: float
    kind: str
    part_ms: float
    steps: int
    bound: int


def measure_shape(shape: str, size: Size) -> ShapeResult:
    """Measure one shape in this process.

    Raises:
        KeyError: The shape does not exist.
    """
    shell = MeasuredShell()
    SHAPES[shape](shell, size)
    longest: Step = shell.meter.longest
    return ShapeResult(
        shape, longest.cpu_ms, longest.kind, longest.part_ms, shell.meter.num_steps, shell.num_bound
    )


def named_shapes(parts: Sequence[str]) -> list[str]:
    """The shapes with one of these texts in their names; all without any."""
    return [name for name in SHAPES if not parts or any(part in name for part in parts)]


def measure_shapes(shapes: Sequence[str], size: Size, runs: int) -> Iterator[ShapeResult]:
    """Measure shapes one after the other; of several runs the one with the shortest step counts.

    Each run is a new process, as caches and imported modules of the last one would hide work.
    """
    context = get_context("spawn")
    for shape in shapes:
        results = []
        for _ in range(runs):
            with ProcessPoolExecutor(1, context, raise_collection_thresholds) as pool:
                results.append(pool.submit(measure_shape, shape, size).result())
        yield min(results, key=lambda result: result.step_ms)
