"""Valid, invalid, repeated and missing versions of the ConfigMap of the configuration."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from stowage.api.events import ConfigurationChanged, Event
from stowage.api.instructions import ConfigurationApplied, ConfigurationFailed
from stowage.operator.configuration.live_configuration import LiveConfiguration, LoadedConfiguration
from stowage.operator.metrics.configuration_metrics import ConfigurationMetrics
from tests.unit.operator.configuration.live_recorder import Recorder, load


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


def test_the_version_read_at_the_start_is_not_applied_again(
    recorder: Recorder,
) -> None:
    recorder.edit("old", None)
    assert recorder.posted == []
    assert recorder.recorded == []


def test_an_older_version_after_a_newer_one_is_ignored(recorder: Recorder) -> None:
    recorder.seen("first", "5")
    recorder.seen("second", "6")
    recorder.apply()
    recorder.seen("first", "5")
    recorder.seen("first", "5", "DELETED")
    assert recorder.posted == []
    assert recorder.live.active.hash == "second"
    assert recorder.live.refusal is None


def test_a_listed_version_is_applied_even_if_it_is_older(recorder: Recorder) -> None:
    recorder.seen("first", "6")
    recorder.seen("restored from a backup", "3", None)
    recorder.apply()
    assert recorder.live.active.hash == "restored from a backup"


def test_a_valid_edit_is_active_once_the_engine_has_applied_it(
    recorder: Recorder,
) -> None:
    recorder.edit("new")
    assert recorder.live.active.hash == "old"
    assert recorder.posted == [ConfigurationChanged("new", {"text": "new"})]
    recorder.apply()
    assert recorder.live.active.hash == "new"
    assert recorder.selected == [("stowage",)]
    note = "configuration new is in force"
    assert recorder.recorded == [("Normal", "ConfigurationApplied", note)]
    assert recorder.about == {"u"}
    shown = {"componentconfig": {"text": "new"}}
    assert recorder.live.configz() == {**shown, "stowage": {"configurationHash": "new"}}


def test_a_configuration_that_the_engine_cannot_apply_is_reported_as_refused(
    recorder: Recorder,
) -> None:
    recorder.edit("new")
    assert list(recorder.handle_in_engine(1, frozenset({0}))) == []
    mistake = 'the configuration: "a plugin raised" (expected one that can be applied)'
    assert recorder.recorded == [
        ("Warning", "InvalidConfiguration", f"old stays in force; {mistake}")
    ]
    assert recorder.live.notes() == ["configuration refused, old stays in force:", f"  {mistake}"]
    assert recorder.metrics()[("stowage_configuration_last_reload_successful",)] == 0
    assert recorder.live.refusal is not None
    assert recorder.live.refusal.resource_version == "1"
    recorder.edit("new")
    recorder.apply()
    assert recorder.live.active.hash == "new"
    assert recorder.live.notes() == []


def test_an_answer_about_a_configuration_that_was_not_posted_changes_nothing(
    recorder: Recorder,
) -> None:
    recorder.live.handle_applied(ConfigurationApplied("other", ("stowage",)))
    recorder.edit("new")
    recorder.live.handle_applied(ConfigurationApplied("other", ("stowage",)))
    recorder.live.handle_failed(ConfigurationFailed("other", "a plugin raised"))
    assert (recorder.live.active.hash, recorder.selected) == ("old", [])
    assert recorder.live.refusal is None
    recorder.apply()
    assert recorder.live.active.hash == "new"


def test_without_a_config_map_to_follow_nothing_is_read_or_reported() -> None:
    posted: list[Event] = []
    live = LiveConfiguration(load("old"), posted.append, lambda _names: None)
    live.handle_event("ADDED", {"metadata": {"uid": "u", "resourceVersion": "1"}})
    live.handle_missing()
    assert (posted, live.refusal, live.num_applied, live.num_refused) == ([], None, 0, 0)


@pytest.mark.parametrize(
    ("shown", "enabled"), [({}, False), ({"enableProfiling": True}, True)], ids=["not set", "set"]
)
def test_profiling_is_enabled_by_the_configuration_in_force(
    shown: dict[str, bool], enabled: bool
) -> None:
    start = LoadedConfiguration("old", shown)
    live = LiveConfiguration(start, lambda _event: None, lambda _names: None)
    assert live.is_profiling_enabled() is enabled


def test_a_failed_configuration_does_not_hide_what_is_wrong_with_a_later_one(
    recorder: Recorder,
) -> None:
    recorder.edit("new")
    recorder.edit("wrong")
    list(recorder.handle_in_engine(1, frozenset({0})))
    assert recorder.live.refusal is not None
    assert recorder.live.refusal.resource_version == "2"
    recorder.edit("third")
    recorder.edit("fourth")
    list(recorder.handle_in_engine(1, frozenset({0})))
    assert recorder.live.notes() == []
    recorder.apply()
    assert recorder.live.active.hash == "fourth"


def test_an_invalid_edit_is_refused_until_a_valid_one_is_applied(
    recorder: Recorder,
) -> None:
    recorder.edit("wrong")
    assert recorder.posted == []
    mistake = 'field: "wrong" (expected something else)'
    note = f"old stays in force; {mistake}"
    assert recorder.recorded == [("Warning", "InvalidConfiguration", note)]
    lines = ["configuration refused, old stays in force:", f"  {mistake}"]
    assert recorder.live.notes() == lines
    assert recorder.metrics()[("stowage_configuration_errors",)] == 1
    assert recorder.metrics()[("stowage_configuration_last_reload_successful",)] == 0
    recorder.edit("new")
    recorder.apply()
    assert recorder.live.notes() == []
    assert {
        (sample.name, *sample.labels)
        for family in ConfigurationMetrics(recorder.live).collect()
        for sample in family.samples
    } == {
        ("stowage_configuration_info", "hash"),
        ("stowage_configuration_errors",),
        ("stowage_configuration_last_reload_successful",),
        ("stowage_configuration_reloads_total", "result"),
    }
    assert recorder.metrics() == {
        ("stowage_configuration_info", "new"): 1,
        ("stowage_configuration_errors",): 0,
        ("stowage_configuration_last_reload_successful",): 1,
        ("stowage_configuration_reloads_total", "applied"): 1,
        ("stowage_configuration_reloads_total", "refused"): 1,
    }


def test_an_event_reports_that_an_invalid_edit_was_reverted(
    recorder: Recorder,
) -> None:
    recorder.edit("wrong")
    recorder.edit("old")
    assert recorder.posted == []
    assert recorder.live.notes() == []
    assert recorder.recorded[-1] == (
        "Normal",
        "ConfigurationApplied",
        "configuration old is in force, as before",
    )


def test_an_invalid_version_that_is_listed_again_is_reported_once(
    recorder: Recorder,
) -> None:
    recorder.seen("wrong", "7")
    recorder.seen("wrong", "7", None)
    assert len(recorder.recorded) == 1


def test_two_quick_edits_are_applied_in_order(recorder: Recorder) -> None:
    recorder.edit("new")
    recorder.edit("old")
    assert [event.hash for event in recorder.posted if isinstance(event, ConfigurationChanged)] == [
        "new",
        "old",
    ]
    recorder.apply()
    assert recorder.live.active.hash == "old"
    assert recorder.live.num_applied == 2


def test_an_edit_reverted_and_made_again_before_any_is_applied_is_active(
    recorder: Recorder,
) -> None:
    for text in ("new", "other", "new"):
        recorder.edit(text)
    recorder.apply()
    assert recorder.live.active.hash == "new"
    assert recorder.live.num_applied == len(recorder.selected) == 3


def test_a_configuration_that_the_engine_cannot_apply_keeps_no_later_one_out(
    recorder: Recorder,
) -> None:
    for text in ("raises", "new"):
        recorder.edit(text)
    assert list(recorder.handle_in_engine(2, frozenset([0]))) == ["new"]
    assert recorder.live.active.hash == "new"


@given(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from(["old", "new", "other", "wrong"]), max_size=4),
            st.integers(0, 4),
            st.frozensets(st.integers(0, 3)),
        ),
        max_size=8,
    )
)
def test_the_active_configuration_is_always_the_one_applied_last(
    rounds: list[tuple[list[str], int, frozenset[int]]],
) -> None:
    recorder = Recorder()
    last, num_applied = "old", 0
    for edits, num_handled, failing in rounds:
        for text in edits:
            recorder.edit(text)
        for applied in recorder.handle_in_engine(num_handled, failing):
            last, num_applied = applied, num_applied + 1
        assert recorder.live.active.hash == last
        assert recorder.live.num_applied == len(recorder.selected) == num_applied


def test_a_deleted_config_map_is_reported_once(recorder: Recorder) -> None:
    recorder.edit("old", "DELETED")
    recorder.live.handle_missing()
    (recorded,) = recorder.recorded
    assert recorded[:2] == ("Warning", "InvalidConfiguration")
    assert "an existing ConfigMap" in recorded[2]
    assert recorder.live.active.hash == "old"
    recorder.edit("old", "ADDED")
    assert recorder.live.notes() == []


def test_pods_without_a_profile_are_counted_in_the_event_note(
    recorder: Recorder,
) -> None:
    recorder.edit("new")
    recorder.live.handle_applied(ConfigurationApplied("new", ("stowage",), {"batch": 3}))
    (recorded,) = recorder.recorded
    assert recorded[2].endswith("pods left without a profile: 3 of batch")


def test_the_log_says_what_became_of_each_version(recorder: Recorder) -> None:
    with capture_logs() as lines:
        recorder.edit("wrong")
        recorder.edit("old")
        recorder.edit("new")
        recorder.apply()
    assert lines == [
        {
            "event": "configuration refused",
            "configuration": "old",
            "resource_version": "1",
            "errors": ['field: "wrong" (expected something else)'],
            "log_level": "error",
        },
        {"event": "configuration valid again", "configuration": "old", "log_level": "info"},
        {
            "event": "configuration applied",
            "configuration": "new",
            "profiles": ("stowage",),
            "dropped": {},
            "log_level": "info",
        },
    ]
