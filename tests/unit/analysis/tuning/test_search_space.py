"""A search tries weights and arguments, and writes what kube-scheduler reads."""

from __future__ import annotations

from typing import Any

from stowage.analysis.tuning.search_space import Choice, configuration_with, search_space
from stowage.api.config.loading import load_configuration
from stowage.cli.profiles import make_frameworks
from stowage.framework.profile.points import ExtensionPoint
from tests.support.engines import configuration_of

CHOSEN: dict[str, Choice] = {
    "NodeResourcesFit.weight": 7,
    "ImageLocality.weight": 0,
    "NodeResourcesFit.type": "MostAllocated",
    "NodeResourcesFit.cpu": 2,
    "NodeResourcesFit.memory": 1,
}


def profile_of(document: dict[str, Any]) -> Any:
    return make_frameworks(load_configuration(document))[0].profile


def test_every_weight_may_be_nought_and_fit_has_strategies() -> None:
    space = {each.name: each.values for each in search_space(["NodeResourcesFit", "Mine"], 3)}
    assert space == {
        "NodeResourcesFit.weight": (0, 1, 2, 3),
        "Mine.weight": (0, 1, 2, 3),
        "NodeResourcesFit.type": ("LeastAllocated", "MostAllocated"),
        "NodeResourcesFit.cpu": (1, 2, 3, 4, 5),
        "NodeResourcesFit.memory": (1, 2, 3, 4, 5),
    }
    assert [each.name for each in search_space(["Mine"], 3)] == ["Mine.weight"]


def test_fit_may_look_at_an_extended_resource_or_leave_it_out() -> None:
    name = "NodeResourcesFit.example.com/gpu"
    (setting,) = (
        each
        for each in search_space(["NodeResourcesFit"], 3, ["example.com/gpu"])
        if each.name == name
    )
    assert setting.values == (0, 1, 2, 3, 4, 5)
    for weight in (0, 4):
        made = configuration_with(configuration_of({}), {**CHOSEN, name: weight})
        load_configuration(made)
        args = made["profiles"][0]["pluginConfig"][0]["args"]
        weights = {each["name"]: each["weight"] for each in args["scoringStrategy"]["resources"]}
        core = {"cpu": 2, "memory": 1}
        assert weights == (core | {"example.com/gpu": weight} if weight else core)


def test_the_configuration_has_the_chosen_weights_and_only_those() -> None:
    profile = profile_of(configuration_with(configuration_of({}), CHOSEN))
    assert profile.weights == {"NodeResourcesFit": 7}
    default = profile_of(configuration_of({}))
    for point in (ExtensionPoint.FILTER, ExtensionPoint.PRE_FILTER):
        names = [each.name for each in profile.plugins[point]]
        assert names == [each.name for each in default.plugins[point]]


def test_other_arguments_and_profiles_stay_and_the_present_document_is_unchanged() -> None:
    ignored = {"ignoredResources": ["example.com/x"]}
    present = configuration_of(
        {"schedulerName": "one", "pluginConfig": [{"name": "NodeResourcesFit", "args": ignored}]},
        {"schedulerName": "other"},
    )
    before = repr(present)
    made = configuration_with(present, CHOSEN)
    assert repr(present) == before
    strategy = {
        "type": "MostAllocated",
        "resources": [{"name": "cpu", "weight": 2}, {"name": "memory", "weight": 1}],
    }
    entry = {"name": "NodeResourcesFit", "args": {**ignored, "scoringStrategy": strategy}}
    assert made["profiles"][0]["pluginConfig"] == [entry]
    assert made["profiles"][1] == present["profiles"][1]
    load_configuration(made)


def test_a_configuration_without_profiles_gets_one() -> None:
    made = configuration_with({"kind": "KubeSchedulerConfiguration"}, CHOSEN)
    assert len(made["profiles"]) == 1
