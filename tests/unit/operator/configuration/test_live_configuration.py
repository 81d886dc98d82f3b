"""Valid, invalid, repeated and missing versions of the ConfigMap."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from stowage.api.config.loading import ConfigError, InvalidConfiguration
from stowage.api.events import ConfigurationChanged, Event
from stowage.api.instructions import ConfigurationApplied
from stowage.operator.configuration.config_map import ConfigMapReference, parse_reference, text_of
from stowage.operator.configuration.config_map_events import ConfigMapEventRecorder
from stowage.operator.configuration.live_configuration import (
    ConfigMapOptions,
    LiveConfiguration,
    LoadedConfiguration,
)
from stowage.operator.metrics.configuration_metrics import ConfigurationMetrics

REFERENCE = ConfigMapReference("stowage-system", "stowage-config")


def load(text: str) -> LoadedConfiguration:
    """Any text is a configuration of that name, unless it is wrong."""
    if text.startswith("wrong"):
        raise InvalidConfiguration([ConfigError("field", text, "something else")])
    return LoadedConfiguration(text, {"text": text}, {"text": text})


class Following(ConfigMapEventRecorder):
    """A live configuration, with everything that it says noted down."""

    def __init__(self) -> None:
        self.posted: list[Event] = []
        self.selected: list[Sequence[str]] = []
        self.told: list[tuple[str, str, str]] = []
        self.live = LiveConfiguration(load("old"), self.posted.append, self.selected.append)
        self.live.follow(ConfigMapOptions(REFERENCE, load), self)
        self._version = 0

    def record(self, uid: str, *, is_warning: bool, reason: str, note: str) -> None:
        self.told.append(("Warning" if is_warning else "Normal", reason, note))

    def edit(self, text: str, event_type: str | None = "MODIFIED") -> None:
        self._version += 1
        self.seen(text, str(self._version), event_type)

    def seen(self, text: str, version: str, event_type: str | None = "MODIFIED") -> None:
        metadata = {"uid": "u", "resourceVersion": version}
        self.live.handle_event(event_type, {"metadata": metadata, "data": {"config.yaml": text}})

    def apply(self) -> None:
        """The engine takes over what was posted."""
        for event in self.posted:
            assert isinstance(event, ConfigurationChanged)
            self.live.handle_applied(ConfigurationApplied(event.hash, ("stowage",)))
        self.posted.clear()

    def metrics(self) -> dict[tuple[str, ...], float]:
        families = ConfigurationMetrics(self.live).collect()
        return {
            (sample.name, *sample.labels.values()): sample.value
            for family in families
            for sample in family.samples
        }


@pytest.fixture
def following() -> Following:
    return Following()


def test_the_version_it_was_started_with_is_no_news(following: Following) -> None:
    following.edit("old", None)
    assert following.posted == []
    assert following.told == []


def test_an_edit_that_comes_again_after_a_later_one_is_no_news(following: Following) -> None:
    following.seen("first", "5")
    following.seen("second", "6")
    following.apply()
    following.seen("first", "5")
    following.seen("first", "5", "DELETED")
    assert following.posted == []
    assert following.live.active.hash == "second"
    assert following.live.refusal is None


def test_a_list_may_be_older_than_a_watch_event_before_it(following: Following) -> None:
    following.seen("first", "6")
    following.seen("restored from a backup", "3", None)
    following.apply()
    assert following.live.active.hash == "restored from a backup"


def test_a_valid_edit_is_in_force_once_the_engine_says_so(following: Following) -> None:
    following.edit("new")
    assert following.live.active.hash == "old"
    assert following.posted == [ConfigurationChanged("new", {"text": "new"})]
    following.apply()
    assert following.live.active.hash == "new"
    assert following.selected == [("stowage",)]
    note = "configuration new is in force"
    assert following.told == [("Normal", "ConfigurationApplied", note)]
    shown = {"kubescheduler.config.k8s.io": {"text": "new"}}
    assert following.live.configz() == {**shown, "stowage": {"configurationHash": "new"}}


def test_a_wrong_edit_is_refused_until_a_valid_one_comes(following: Following) -> None:
    following.edit("wrong")
    assert following.posted == []
    mistake = 'field: "wrong" (expected something else)'
    note = f"old stays in force; {mistake}"
    assert following.told == [("Warning", "InvalidConfiguration", note)]
    lines = ["configuration refused, old stays in force:", f"  {mistake}"]
    assert following.live.notes() == lines
    assert following.metrics()[("stowage_configuration_errors",)] == 1
    assert following.metrics()[("stowage_configuration_last_reload_successful",)] == 0
    following.edit("new")
    following.apply()
    assert following.live.notes() == []
    assert following.metrics() == {
        ("stowage_configuration_info", "new"): 1,
        ("stowage_configuration_errors",): 0,
        ("stowage_configuration_last_reload_successful",): 1,
        ("stowage_configuration_reloads_total", "applied"): 1,
        ("stowage_configuration_reloads_total", "refused"): 1,
    }


def test_taking_a_wrong_edit_back_is_told_too(following: Following) -> None:
    following.edit("wrong")
    following.edit("old")
    assert following.posted == []
    assert following.live.notes() == []
    assert following.told[-1] == (
        "Normal",
        "ConfigurationApplied",
        "configuration old is in force, as before",
    )


def test_a_version_listed_again_is_not_refused_again(following: Following) -> None:
    following.seen("wrong", "7")
    following.seen("wrong", "7", None)
    assert len(following.told) == 1


def test_two_quick_edits_come_into_force_in_their_order(following: Following) -> None:
    following.edit("new")
    following.edit("old")
    assert [
        event.hash for event in following.posted if isinstance(event, ConfigurationChanged)
    ] == [
        "new",
        "old",
    ]
    following.apply()
    assert following.live.active.hash == "old"


def test_a_config_map_that_is_gone_is_missed_once(following: Following) -> None:
    following.edit("old", "DELETED")
    following.live.handle_missing()
    (told,) = following.told
    assert told[:2] == ("Warning", "InvalidConfiguration")
    assert "an existing ConfigMap" in told[2]
    assert following.live.active.hash == "old"
    following.edit("old", "ADDED")
    assert following.live.notes() == []


def test_pods_that_left_the_queue_are_in_the_note(following: Following) -> None:
    following.edit("new")
    following.live.handle_applied(ConfigurationApplied("new", ("stowage",), {"batch": 3}))
    (told,) = following.told
    assert told[2].endswith("pods left without a profile: 3 of batch")


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("a/b", ConfigMapReference("a", "b", "config.yaml")),
        ("a/b:c.yaml", ConfigMapReference("a", "b", "c.yaml")),
    ],
)
def test_a_reference_is_namespace_name_and_key(text: str, reference: ConfigMapReference) -> None:
    assert parse_reference(text) == reference


@pytest.mark.parametrize("text", ["", "b", "/b", "a/", "a/b:", "a/b/c", ":c"])
def test_anything_else_is_no_reference(text: str) -> None:
    with pytest.raises(InvalidConfiguration, match="NAMESPACE/NAME"):
        parse_reference(text)


def test_a_config_map_without_the_key_names_those_it_has() -> None:
    with pytest.raises(InvalidConfiguration, match=r'data: \["other"\] \(expected the key'):
        text_of({"data": {"other": ""}}, REFERENCE)
