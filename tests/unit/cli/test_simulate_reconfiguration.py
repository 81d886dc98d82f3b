"""A policy of stowage simulate may change during the experiment (``--reconfigure``)."""

from __future__ import annotations

import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from stowage.analysis.simulation.run import simulate
from stowage.api.config.loading import InvalidConfiguration
from stowage.api.instructions import BindPod, ConfigurationApplied
from stowage.cli.simulate.policies import read_policies
from stowage.engine.journal import Entry
from tests.support.engines import configuration_of, fit_profile
from tests.support.workloads import nodes_of, pods_of, synthetic_workload

CHANGES_AT_S = 10.0


class Course:
    """When configurations apply, and which nodes pods go to before and after CHANGES_AT_S."""

    def __init__(self) -> None:
        self.applied: list[float] = []
        self.before: Counter[str] = Counter()
        self.after: Counter[str] = Counter()

    def record(self, entry: Entry) -> None:
        for each in entry.instructions:
            if isinstance(each, ConfigurationApplied):
                self.applied.append(entry.now)
            elif isinstance(each, BindPod):
                counted = self.before if entry.now < CHANGES_AT_S else self.after
                counted[each.node_name] += 1


def lived(folder: Path, *changes: str, scheduler_name: str = "stowage") -> Course:
    """A pod arrives each second, on ten nodes with room for 40 pods each."""
    policy = read_policies([packing(folder)], [], [], ["spreading:" + ";".join(changes)])[1]
    policy = pickle.loads(pickle.dumps(policy))  # as a worker process gets it
    arrivals = {"process": "constant", "perSecond": 1}
    pods = pods_of(
        count=20, arrivals=arrivals, lifetime="100s", pod_spec={"schedulerName": scheduler_name}
    )
    workload = synthetic_workload(nodes=[nodes_of(10, "40")], pods=[pods])
    course = Course()
    simulate(workload, policy, 1, course)
    return course


def packing(folder: Path) -> Path:
    return write(folder / "packing.yaml", "MostAllocated")


def write(path: Path, strategy: str, **fields: Any) -> Path:
    written = {**configuration_of(fit_profile(strategy, "stowage")), **fields}
    path.write_text(yaml.safe_dump(written))
    return path


@pytest.mark.parametrize("scheduler_name", ["stowage", "another-scheduler"])
def test_pods_are_placed_by_the_other_configuration_from_its_time_on(
    tmp_path: Path, scheduler_name: str
) -> None:
    spreading = write(tmp_path / "spreading.yaml", "LeastAllocated")
    course = lived(tmp_path, f"10s={spreading}", scheduler_name=scheduler_name)
    assert course.applied == [CHANGES_AT_S]
    assert list(course.before.values()) == [10]
    assert (len(course.after), course.after.total()) == (9, 10)
    assert not course.before.keys() & course.after.keys()


def test_a_file_and_weights_may_follow_each_other(tmp_path: Path) -> None:
    """A weight of 0 leaves nothing that prefers the node with pods."""
    packed = packing(tmp_path)
    course = lived(tmp_path, f"2s={packed}", "10s=NodeResourcesFit=0")
    assert course.applied == [2.0, CHANGES_AT_S]
    assert list(course.before.values()) == [10]
    assert len(course.after) > 1


REFUSED = {
    "no time": ("packing.yaml", '--reconfigure: "packing.yaml" (expected [NAME:]TIME=FILE'),
    "a time": ("soon=packing.yaml", "in order of time"),
    "a negative time": ("-1s=NodeResourcesFit=2", "in order of time"),
    "an earlier time": ("2s=NodeResourcesFit=2;1s=NodeResourcesFit=3", "in order of time"),
    "no file": ("1s=missing.yaml", '--reconfigure: "missing.yaml" (expected a readable file'),
    "no plugin": ("1s=Fit=2", '--reconfigure: "Fit" (expected a score plugin of profile stowage'),
    "no weight": ("1s=NodeResourcesFit=x", '--reconfigure: "NodeResourcesFit=x" (expected PLUGIN='),
}


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED)
def test_an_error_names_the_flag_and_what_was_expected(
    text: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidConfiguration) as refused:
        read_policies([packing(tmp_path)], [], [], [text])
    assert message in str(refused.value)


def test_a_change_that_needs_a_restart_is_refused_with_its_file_and_field(tmp_path: Path) -> None:
    extender = {"urlPrefix": "http://127.0.0.1:1", "filterVerb": "filter"}
    other = write(tmp_path / "other.yaml", "LeastAllocated", extenders=[extender])
    with pytest.raises(InvalidConfiguration, match=r"other\.yaml.*extenders.*needs a restart"):
        read_policies([packing(tmp_path)], [], [], [f"1s={other}"])


def ended(folder: Path, change: str, cpu: str) -> tuple[float, float]:
    """When an experiment ends whose pods run for 5 s on nodes with 1 cpu, and how many ran."""
    policy = read_policies([packing(folder)], [], [], [change])[1]
    pods = pods_of("pod", cpu, count=2, lifetime="5s", pod_spec={"schedulerName": "stowage"})
    workload = synthetic_workload(nodes=[nodes_of(2, "1")], pods=[pods])
    metrics = simulate(workload, policy, 1).metrics
    return metrics["ended_s"], metrics["bound"]


def test_a_change_after_the_last_pod_does_not_prolong_the_experiment(tmp_path: Path) -> None:
    assert ended(tmp_path, "600s=NodeResourcesFit=2", "1") == (5.0, 2.0)
    assert ended(tmp_path, "2h=NodeResourcesFit=2", "1") == (5.0, 2.0)


def test_pending_pods_wait_for_a_change(tmp_path: Path) -> None:
    """No node has room for the pods until no plugin filters."""
    written = configuration_of(fit_profile("MostAllocated", "stowage"))
    written["profiles"][0]["plugins"]["filter"] = {"disabled": [{"name": "*"}]}
    unfiltered = tmp_path / "unfiltered.yaml"
    unfiltered.write_text(yaml.safe_dump(written))
    assert ended(tmp_path, "2h=NodeResourcesFit=2", "8") == (0.0, 0.0)
    assert ended(tmp_path, f"2h={unfiltered}", "8") == (7205.0, 2.0)
