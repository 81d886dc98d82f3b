"""The plugin GpuSharing beside the default plugins, in an engine."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml
from msgspec import convert

from stowage.api.config.loading import KubeSchedulerProfile
from stowage.api.events import AssignedPodSeen, NodeSeen, PendingPodSeen
from stowage.api.instructions import AttemptResult, BindPod, EvictPod
from stowage.api.objects.pod import Pod
from stowage.engine import Engine, make_engine
from stowage.framework import Framework, build_profile
from tests.openb.installed import gpushare_registry
from tests.support.builders import make_node, make_pod
from tests.support.engines import of_type

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "replay-gpu-pods.md"
RESOURCE = "gpushare.example.com/gpu-milli"
GPUS = "reserved.stowage/gpus"


def _engine(plugin: str = "GpuSharing", **args: Any) -> Engine:
    profile = {
        "schedulerName": "default-scheduler",
        "plugins": {"multiPoint": {"enabled": [{"name": plugin}]}},
        "pluginConfig": [{"name": plugin, "args": args}],
    }
    framework = Framework(
        build_profile(convert(profile, KubeSchedulerProfile), gpushare_registry())
    )
    return make_engine([framework], lambda _num_ties: 0)


def _node(name: str, gpus: int) -> NodeSeen:
    return NodeSeen(make_node(name, cpu="64", allocatable={RESOURCE: 1000 * gpus}))


def _pod(name: str, milli: int, **fields: Any) -> Pod:
    return make_pod(name, requests={RESOURCE: milli}, **fields)


def _placed(name: str, milli: int, node: str, gpus: str, **fields: Any) -> AssignedPodSeen:
    pod = _pod(name, milli, node=node, **fields)
    pod.metadata.annotations[GPUS] = gpus
    return AssignedPodSeen(pod)


def _gpus(engine: Engine, *pods: Pod) -> list[str]:
    engine.handle(list(map(PendingPodSeen, pods)), 0.0)
    return [each.annotations[GPUS] for each in of_type(BindPod, engine.schedule(0.0, len(pods)))]


def test_shared_pods_fill_a_gpu_and_whole_ones_take_untouched_gpus() -> None:
    engine = _engine()
    engine.handle([_node("n", 4)], 0.0)
    pods = [_pod("a", 600), _pod("b", 2000), _pod("c", 300), _pod("d", 500)]
    assert _gpus(engine, *pods) == ["0", "1,2", "0", "3"]


def test_after_a_restart_the_gpus_are_read_from_the_pods() -> None:
    engine = _engine()
    engine.handle([_node("n", 2), _placed("a", 1000, "n", "0")], 0.0)
    assert _gpus(engine, _pod("b", 400)) == ["1"]


def test_a_pool_that_is_large_enough_in_total_does_not_fit_a_whole_gpu() -> None:
    engine = _engine()
    engine.handle([_node("n", 2), _placed("a", 100, "n", "0"), _placed("b", 100, "n", "1")], 0.0)
    assert _gpus(engine, _pod("c", 1000)) == []
    engine.handle([PendingPodSeen(_pod("d", 1500))], 0.0)
    *_, refused = of_type(AttemptResult, engine.schedule(0.0, 1))
    assert "pod requests 1500 of gpushare.example.com/gpu-milli, expected" in refused.message


def test_a_pod_with_priority_evicts_the_pod_on_the_gpu_that_it_needs() -> None:
    engine = _engine()
    nodes = [_node("full", 2), _node("half", 1)]
    shared = [_placed("a", 500, "full", "0"), _placed("b", 500, "full", "1", priority=9)]
    engine.handle([*nodes, *shared, _placed("c", 600, "half", "0", priority=9)], 0.0)
    engine.handle([PendingPodSeen(_pod("d", 1000, priority=5))], 0.0)
    (eviction,) = of_type(EvictPod, engine.schedule(0.0, 1))
    assert eviction.victim.key == "default/a"


def test_an_annotation_that_is_no_list_of_gpus_counts_for_nothing() -> None:
    engine = _engine()
    engine.handle([_node("n", 1), _placed("a", 400, "n", "first")], 0.0)
    assert _gpus(engine, _pod("b", 600)) == ["0"]


def test_a_node_with_more_gpus_widens_the_columns() -> None:
    engine = _engine("BestFit")
    engine.handle([_node("small", 1)], 0.0)
    assert _gpus(engine, _pod("a", 1000)) == ["0"]
    engine.handle([_node("large", 8)], 1.0)
    assert _gpus(engine, _pod("b", 8000)) == ["0,1,2,3,4,5,6,7"]


def test_the_profile_of_the_page_places_a_pod_where_it_leaves_least_fragmented() -> None:
    (text,) = re.findall(r"```yaml\n(profiles:.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    (written,) = yaml.safe_load(text)["profiles"]
    profile = convert({**written, "schedulerName": "default-scheduler"}, KubeSchedulerProfile)
    engine = make_engine(
        [Framework(build_profile(profile, gpushare_registry()))], lambda _num_ties: 0
    )
    engine.handle([_node("idle", 2), _node("used", 2), _placed("a", 500, "used", "1")], 0.0)
    assert _gpus(engine, _pod("b", 500)) == ["1"]
