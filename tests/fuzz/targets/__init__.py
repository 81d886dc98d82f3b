"""What is fuzzed: a class for each target, which makes inputs and states what must hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.fuzz.campaign import Target
from tests.fuzz.targets.configuration import ConfigMapTarget, ConfigurationTarget
from tests.fuzz.targets.http import ConsoleTarget, DecisionsTarget
from tests.fuzz.targets.recordings import RecordingTarget
from tests.fuzz.targets.traces import TraceTarget
from tests.fuzz.targets.values import (
    CelTarget,
    ObjectTarget,
    field_selectors,
    label_selectors,
    quantities,
)

TARGETS: Mapping[str, Callable[[], Target]] = {
    "quantities": quantities,
    "labels": label_selectors,
    "fields": field_selectors,
    "cel": CelTarget,
    "objects": ObjectTarget,
    "configuration": ConfigurationTarget,
    "configmap": ConfigMapTarget,
    "decisions": DecisionsTarget,
    "console": ConsoleTarget,
    "recordings": RecordingTarget,
    "traces": TraceTarget,
}
"""Name on the command line -> the target."""
