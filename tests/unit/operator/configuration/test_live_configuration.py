"""Valid, invalid, repeated and missing versions of the ConfigMap of the configuration."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from stowage.api.config.loading import ConfigError, InvalidConfiguration
from stowage.api.events import ConfigurationChanged, Event
from stowage.api.instructions import ConfigurationApplied, ConfigurationFailed
from stowage.operator.configuration.config_map import ConfigMapReference, parse_reference, text_of
from stowage.operator.configuration.live_configuration import (
    ConfigMapOptions,
    LiveConfiguration,
    LoadedConfiguration,
)
from stowage.operator.configuration.reading import ThreadReader
from stowage.operator.metrics.configuration_metrics import ConfigurationMetrics
from stowage.operator.writers.object_events import ObjectEventRecorder

REFERENCE = ConfigMapReference("stowage-system", "stowage-config")


def load(text: str) -> LoadedConfiguration:
    """Decode any text as a configuration whose hash is the text; "wrong" is invalid."""
    if text.startswith("wrong"):
        raise InvalidConfiguration([ConfigError("field", text, "something else")])
    return LoadedConfiguration(text, {"text": text}, {"text": text})


class Recorder(ObjectEventRecorder):
    """A live configuration that records the events it posts and writes."""

    def __init__(self) -> None:
        self.posted: list[Event] = []
        self.selected: list[Sequence[str]] = []
        self.recorded: list[tuple[str, str, str]] = []
        self.about: set[str] = set()
        self.live = LiveConfiguration(load("old"), self.posted.append, self.selected.append)
        self.live.follow(ConfigMapOptions(REFERENCE, load), self)
        self._version = 0

    def record(self, uid: str, *, reason: str, note: str, is_warning: bool = False) -> None:
        self.about.add(uid)
        self.recorded.append(("Warning" if is_warning else "Normal", reason, note))

    def edit(self, text: str, event_type: str | None = "MODIFIED") -> None:
        self._version += 1
        self.seen(text, str(self._version), event_type)

    def seen(self, text: str, version: str, event_type: str | None = "MODIFIED") -> None:
        metadata = {"uid": "u", "resourceVersion": version}
        self.live.handle_event(event_type, {"metadata": metadata, "data": {"config.yaml": text}})

    def apply(self) -> None:
        """Let the engine apply the posted configurations."""
        for _ in self.handle_in_engine(len(self.posted)):
            pass

    def handle_in_engine(self, number: int, failing: frozenset[int] = frozenset()) -> Iterator[str]:
        """Let the engine handle the oldest posted configurations, and fail to apply some of them.

        Yields:
            The hash of each applied configuration.
        """
        for place, event in enumerate(self.posted[:number]):
            assert isinstance(event, ConfigurationChanged)
            if place in failing:
                self.live.handle_failed(ConfigurationFailed(event.hash, "a plugin raised"))
            else:
                self.live.handle_applied(ConfigurationApplied(event.hash, ("stowage",)))
                yield event.hash
        del self.posted[:number]

    def metrics(self) -> dict[tuple[str, ...], float]:
        families = ConfigurationMetrics(self.live).collect()
        return {
            (sample.name, *sample.labels.values()): sample.value
            for family in families
            for sample in family.samples
        }


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


class ThreadRecorder(Recorder):
    """Reads versions in a thread, which waits for `go_on`."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = threading.Event()
        self.reader = ThreadReader()
        self.live.follow(ConfigMapOptions(REFERENCE, self._load), self, self.reader.read)

    async def read_all(self) -> None:
        """Let the thread go on, and wait until all versions are read."""
        self.go_on.set()
        await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()})

    def _load(self, text: str) -> LoadedConfiguration:
        assert self.go_on.wait(timeout=10), "the event loop waits for the thread"
        if text == "broken":
            raise KeyError(text)
        return load(text)


@pytest.fixture
async def reading() -> AsyncIterator[ThreadRecorder]:
    recorder = ThreadRecorder()
    yield recorder
    recorder.go_on.set()
    await recorder.reader.close()


async def test_the_event_loop_goes_on_while_a_version_is_read(reading: ThreadRecorder) -> None:
    reading.edit("new")
    await asyncio.sleep(0)
    assert reading.posted == []
    await reading.read_all()
    assert reading.posted == [ConfigurationChanged("new", {"text": "new"})]


async def test_versions_and_a_deletion_take_effect_in_their_order(reading: ThreadRecorder) -> None:
    reading.edit("first")
    await asyncio.sleep(0)
    reading.edit("wrong")
    reading.edit("second")
    reading.edit("second", "DELETED")
    assert reading.recorded == []
    await reading.read_all()
    assert [event.hash for event in reading.posted if isinstance(event, ConfigurationChanged)] == [
        "first",
        "second",
    ]
    notes = [note for _, _, note in reading.recorded]
    assert [note.partition(";")[0] for note in notes] == [
        "first stays in force",
        "second stays in force",
    ]
    assert "an existing ConfigMap" in notes[1]


async def test_an_unexpected_exception_keeps_no_later_version_out(reading: ThreadRecorder) -> None:
    reading.edit("broken")
    reading.edit("new")
    await reading.read_all()
    assert reading.posted == [ConfigurationChanged("new", {"text": "new"})]


async def test_no_version_is_taken_after_the_end(reading: ThreadRecorder) -> None:
    reading.edit("new")
    await asyncio.sleep(0)
    await reading.reader.close()
    reading.edit("newer")
    reading.go_on.set()
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert reading.posted == []


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("a/b", ConfigMapReference("a", "b", "config.yaml")),
        ("a/b:c.yaml", ConfigMapReference("a", "b", "c.yaml")),
    ],
)
def test_a_reference_has_namespace_name_and_optional_key(
    text: str, reference: ConfigMapReference
) -> None:
    assert parse_reference(text) == reference


@pytest.mark.parametrize("text", ["", "b", "/b", "a/", "a/b:", "a/b/c", ":c"])
def test_an_invalid_reference_is_refused(text: str) -> None:
    with pytest.raises(InvalidConfiguration, match="NAMESPACE/NAME"):
        parse_reference(text)


def test_the_error_for_a_missing_key_lists_the_existing_keys() -> None:
    with pytest.raises(InvalidConfiguration, match=r'data: \["other"\] \(expected the key'):
        text_of({"data": {"other": ""}}, REFERENCE)


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
