"""Edits of the configuration. Their text is loaded in a thread, so the loop only applies them."""

from __future__ import annotations

import msgspec

from stowage.api.config.loading import KubeSchedulerConfiguration, load_configuration
from stowage.api.events import ConfigurationChanged
from stowage.cli.configurator import Configurator
from stowage.plugins import in_tree_registry
from stowage_benchmarks.core.run import SCHEDULER_NAME
from stowage_benchmarks.steps.shapes.shape import Shapes, Size, basic_cluster, pending, pod
from stowage_benchmarks.steps.shell import MeasuredShell
from stowage_benchmarks.workloads import Json

_PROFILES = 32
_CHARACTERS = 262_144
_WAITING = 100_000
_UNSCHEDULABLE_S = 300.0
_TURNS = 100


def _profiles(shell: MeasuredShell, size: Size) -> None:
    _edit(shell, size, [_profile(index) for index in range(_PROFILES)])


def _long_text(shell: MeasuredShell, size: Size) -> None:
    """One profile with as many terms of node affinity as the text has room for."""
    terms: list[Json] = []
    while len(msgspec.json.encode(terms)) < size.of(_CHARACTERS):
        terms += [_term(len(terms) + number) for number in range(100)]
    added = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    args = [{"name": "NodeAffinity", "args": {"addedAffinity": added}}]
    _edit(shell, size, [{"schedulerName": SCHEDULER_NAME, "pluginConfig": args}])


def _waiting_pods(shell: MeasuredShell, size: Size) -> None:
    """The queue has many pods, which pass PreEnqueue again and are ordered anew."""
    shell.list_pods(pod(f"waiting-{index}") for index in range(size.of(_WAITING)))
    _edit(shell, size, [_profile(0)])


def _edit(shell: MeasuredShell, size: Size, profiles: list[Json]) -> None:
    basic_cluster(shell, size)
    configurator = Configurator(in_tree_registry(), _UNSCHEDULABLE_S)
    start = load_configuration()
    shell.engine.follow_configuration("start", configurator.configure)
    written = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": profiles,
    }
    text = msgspec.json.encode(written).decode()
    loaded = configurator.reload(start, _parsed, text)
    shell.receive([ConfigurationChanged(loaded.hash, loaded.engine_part)])
    for name in (profile["schedulerName"] for profile in profiles):
        shell.receive([pending(pod(f"p-{name}", schedulerName=name))])
    shell.schedule_for(_TURNS)


def _parsed(text: str) -> KubeSchedulerConfiguration:
    return load_configuration(msgspec.json.decode(text))


def _profile(index: int) -> Json:
    name = SCHEDULER_NAME if index == 0 else f"{SCHEDULER_NAME}-{index}"
    weights = [{"name": "NodeResourcesFit", "weight": index + 1}]
    score = {"disabled": [{"name": "NodeResourcesFit"}], "enabled": weights}
    return {"schedulerName": name, "plugins": {"score": score}}


def _term(number: int) -> Json:
    expression = {"key": "disk", "operator": "NotIn", "values": [f"disk-{number}"]}
    return {"matchExpressions": [expression]}


CONFIGURATION_SHAPES: Shapes = {
    "a configuration with 32 profiles": _profiles,
    "a configuration of 262,144 characters": _long_text,
    "a configuration for 100,000 waiting pods": _waiting_pods,
}
