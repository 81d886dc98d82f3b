"""The end of a recording shows in the log and in the metrics."""

from __future__ import annotations

from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest
from structlog.testing import capture_logs

from stowage.api.events import NodeSeen
from stowage.engine.journal import HandleCall
from stowage.operator.clock import Clock
from stowage.operator.configuration.live_configuration import LoadedConfiguration
from stowage.operator.metrics.replica_metrics import RecordingMetrics
from stowage.operator.recording import start_recording
from stowage.operator.run_options import RecordingOptions
from stowage.recording.limits import RecordingLimits
from stowage.recording.reader import Recording
from stowage.recording.recorder import Recorder
from tests.support.builders import make_node

CONFIGURATION = LoadedConfiguration(
    "hash",
    {"shown": "not recorded"},
    {"profiles": [], "clientConnection": {"kubeconfig": "/home/me"}, "leaderElection": {}},
)


def started(folder: Path, max_bytes: int = 2**20) -> Recorder:
    options = RecordingOptions(
        folder, RecordingLimits(max_bytes, 3600.0), 300.0, feature_gates={"AllBeta": False}
    )
    clock = Clock(monotonic=lambda: 50.0, unix_nanoseconds=lambda: 1_700_000_050_000_000_000)
    return start_recording(options, CONFIGURATION, clock)


def metric_lines(recorder: Recorder) -> list[str]:
    registry = CollectorRegistry()
    registry.register(RecordingMetrics(recorder))
    text = generate_latest(registry).decode()
    return [line for line in text.splitlines() if not line.startswith("#")]


def test_the_header_says_when_and_with_which_configuration(tmp_path: Path) -> None:
    with capture_logs() as logs:
        recorder = started(tmp_path)
        recorder.close()
    with Recording(recorder.path) as recording:
        assert list(recording.calls()) == []
        header = recording.header
    assert header.time_of_day(50.0) == "2023-11-14T22:14:10.000000Z"
    assert (header.configuration, header.configuration_hash) == ({"profiles": []}, "hash")
    assert header.feature_gates == {"AllBeta": False}
    assert recorder.path.name == "20231114T221410.000000Z-000001.recording"
    assert [each["event"] for each in logs] == ["recording"]


def test_the_end_of_a_recording_is_in_the_log_and_in_the_metric(tmp_path: Path) -> None:
    with capture_logs() as logs:
        recorder = started(tmp_path, 100)
        assert "stowage_recording_active 1.0" in metric_lines(recorder)
        recorder.record(HandleCall(60.0, (), ()))
        recorder.close()
    ended = [each for each in logs if each["event"] == "the recording ended"]
    (reason,) = [each["reason"] for each in ended]
    assert "the maximum size of 100 bytes is too small" in reason
    size = float(sum(path.stat().st_size for path in tmp_path.iterdir()))
    assert metric_lines(recorder) == [
        "stowage_recording_active 0.0",
        f"stowage_recording_bytes {size}",
    ]


def test_names_are_replaced_if_asked_for(tmp_path: Path) -> None:
    for anonymises, named in ((False, True), (True, False)):
        limits = RecordingLimits(2**20, 3600.0)
        options = RecordingOptions(tmp_path / str(anonymises), limits, 300.0, anonymises)
        recorder = start_recording(options, CONFIGURATION, Clock())
        recorder.record(HandleCall(60.0, (NodeSeen(make_node("secret")),), ()))
        recorder.close()
        with Recording(recorder.path) as recording:
            (call,) = recording.calls()
        assert ("secret" in repr(call)) == named


def test_an_observer_says_itself_where_it_records(tmp_path: Path) -> None:
    options = RecordingOptions(tmp_path, RecordingLimits(2**20, 3600.0), 300.0)
    ended: list[str] = []
    with capture_logs() as logs:
        start_recording(options, CONFIGURATION, Clock(), ended.append).close("stopped")
    assert logs == []
