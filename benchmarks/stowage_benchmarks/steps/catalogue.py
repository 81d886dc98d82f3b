"""All shapes by name."""

from __future__ import annotations

from stowage_benchmarks.steps.shapes.configuration import CONFIGURATION_SHAPES
from stowage_benchmarks.steps.shapes.devices import DEVICE_SHAPES
from stowage_benchmarks.steps.shapes.gangs import GANG_SHAPES
from stowage_benchmarks.steps.shapes.nodes import NODE_SHAPES
from stowage_benchmarks.steps.shapes.preemption import PREEMPTION_SHAPES
from stowage_benchmarks.steps.shapes.queue import QUEUE_SHAPES
from stowage_benchmarks.steps.shapes.shape import Shapes
from stowage_benchmarks.steps.shapes.storage import STORAGE_SHAPES
from stowage_benchmarks.steps.shapes.terms import TERMS

SHAPES: Shapes = {
    **TERMS,
    **NODE_SHAPES,
    **PREEMPTION_SHAPES,
    **DEVICE_SHAPES,
    **GANG_SHAPES,
    **QUEUE_SHAPES,
    **STORAGE_SHAPES,
    **CONFIGURATION_SHAPES,
}
