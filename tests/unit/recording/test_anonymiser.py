"""An anonymous recording holds no name, and what was decided is equal up to the renaming."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import msgspec
import pytest
from msgspec.structs import replace

from stowage.api.config.loading import load_configuration, to_builtins
from stowage.api.config.types import API_VERSION, KIND
from stowage.api.events import (
    CustomObjectSeen,
    CustomResourceGone,
    Event,
    NodeSeen,
    PendingPodSeen,
    StorageSeen,
)
from stowage.api.instructions import EmitEvent, PodReference
from stowage.api.objects.meta import LabelSelector, ObjectMeta
from stowage.api.objects.node import NodeSelectorRequirement, NodeSelectorTerm
from stowage.api.objects.volume import (
    EphemeralVolumeSource,
    PersistentVolumeClaim,
    Volume,
)
from stowage.api.values.selectors import compile_label_selector
from stowage.cli.profiles import make_frameworks
from stowage.engine import Journal, make_engine
from stowage.engine.journal import HandleCall, ReplayDiverged, replay
from stowage.recording.anonymiser import Anonymiser
from stowage.recording.calls import CallEncoder, decode_calls
from stowage.recording.header import Header
from tests.support.builders import ZONE, label_selector, make_node, make_pod
from tests.support.filled_messages import KINDS, MARK, messages_of


@pytest.mark.parametrize("kind", KINDS)
def test_no_text_of_any_event_or_instruction_stays(kind: type[msgspec.Struct]) -> None:
    """The values are made from the types, so a new field is filled and checked as well."""
    anonymiser, marked = Anonymiser(), kind is CustomResourceGone
    for value in messages_of(kind):
        marked |= MARK in repr(value)
        assert MARK not in repr(anonymiser.struct(value))
        is_event = isinstance(value, get_args(Event))
        entry = HandleCall(0.0, (value,), ()) if is_event else HandleCall(0.0, (), (value,))
        assert MARK.encode() not in CallEncoder(anonymiser).encode([entry])
    assert marked


def test_names_of_the_header_are_replaced_and_plugins_stay() -> None:
    term = {"matchExpressions": [{"key": f"{MARK}.org/a", "operator": "In", "values": [MARK]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    profile = {
        "schedulerName": MARK,
        "pluginConfig": [{"name": "NodeAffinity", "args": {"addedAffinity": required}}],
    }
    meta = {"apiVersion": API_VERSION, "kind": KIND}
    written = load_configuration({**meta, "profiles": [profile]})
    builtins = msgspec.json.decode(msgspec.json.encode(to_builtins(written), enc_hook=str))
    header = Header("0.1.0", 0.0, builtins, "0f3c", 300.0)
    anonymiser = Anonymiser()
    anonymous = anonymiser.header(header)
    assert MARK not in repr(anonymous)
    (framework,) = make_frameworks(load_configuration(anonymous.configuration))
    assert framework.scheduler_name == anonymiser.text(MARK)
    default = header.configuration | {"profiles": []}
    assert anonymiser.header(replace(header, configuration=default)).configuration == default


def test_equal_names_stay_equal_and_selectors_match() -> None:
    anonymiser = Anonymiser()
    labels = {"example.org/team": "zebras", "app": "giraffe", "number": "12"}
    pod = anonymiser.struct(PendingPodSeen(make_pod("p", labels=labels))).pod
    assert labels.items().isdisjoint(pod.metadata.labels.items() - {("number", "12")})
    for wanted, matches in ((labels, True), ({"app": "zebras"}, False)):
        selector: LabelSelector = anonymiser.struct(label_selector(wanted))
        assert compile_label_selector(selector).matches(pod.metadata.labels) is matches


def test_what_kubernetes_gives_a_meaning_stays() -> None:
    node = make_node("zebra", cpu="4", zone="savanna")
    anonymous = Anonymiser().struct(NodeSeen(node)).node
    assert ZONE in anonymous.metadata.labels
    assert anonymous.status.allocatable == node.status.allocatable
    text = Anonymiser().text
    for kept in ("3", "1.5Gi", "1m30s", "2026-05-01T12:00:00Z", "NoSchedule", "kube-system"):
        assert text(kept) == kept
    uid = "0f8fad5b-d9cb-469f-a165-70867728950e"
    assert text(f"Preempted by pod {uid}") == f"Preempted by pod {uid}"
    assert text("1 Insufficient zebra.org/gpu.") == "1 Insufficient zebra.org/gpu."


def test_names_that_kubernetes_makes_of_names_are_still_made_of_them() -> None:
    anonymiser = Anonymiser()
    volume = Volume("data", ephemeral=EphemeralVolumeSource())
    pod = make_pod("zebra-0")
    event = PendingPodSeen(replace(pod, spec=replace(pod.spec, volumes=(volume,))))
    seen = anonymiser.struct(event).pod
    claim = PersistentVolumeClaim(ObjectMeta(name="zebra-0-data", namespace="default"))
    owned = anonymiser.struct(StorageSeen(claim)).object
    assert owned.metadata.name == f"{seen.metadata.name}-{seen.spec.volumes[0].name}"
    fields = (NodeSelectorRequirement("metadata.name", "In", ("zebra-1",)),)
    term = anonymiser.struct(NodeSelectorTerm(match_fields=fields))
    assert term.match_fields[0].values == (anonymiser.text("zebra-1"),)


def test_expressions_about_devices_still_match_their_attributes() -> None:
    anonymiser = Anonymiser()
    expression = 'device.attributes["zebra.org"].stripes == "many" && device.driver == "zebra.org"'
    changed = anonymiser.struct(msgspec.convert({"expression": expression}, _Selector))
    driver, name = anonymiser.text("zebra.org"), anonymiser.text("stripes")
    assert changed.expression.startswith(f'device.attributes["{driver}"].{name} == ')
    assert f'device.driver == "{driver}"' in changed.expression


class _Selector(msgspec.Struct):
    expression: str


def test_a_message_about_names_is_the_message_about_their_hashes() -> None:
    anonymiser = Anonymiser()
    pod = PodReference("default", "zebra-1", "")
    note = "Successfully assigned default/zebra-1 to savanna-7.example.net"
    event = EmitEvent(pod, "Normal", "Scheduled", "Binding", note, "stowage")
    changed = anonymiser.struct(event)
    node = anonymiser.text("savanna-7.example.net")
    assert changed.note == f"Successfully assigned {changed.pod.key} to {node}"
    assert (changed.reason, changed.event_type) == ("Scheduled", "Normal")


def test_two_recordings_have_no_hash_in_common() -> None:
    assert Anonymiser().text("zebra") != Anonymiser().text("zebra")


def test_objects_of_other_kinds_are_reduced_to_their_metadata() -> None:
    metadata = {"name": "zebra", "labels": {"a": "zebra"}, "resourceVersion": "7"}
    seen = CustomObjectSeen("foos.v1.example.com", {"metadata": metadata, "spec": {"x": "zebra"}})
    changed = Anonymiser().struct(seen)
    assert "zebra" not in repr(changed.object)
    assert list(changed.object) == ["metadata"]
    assert changed.object["metadata"]["resourceVersion"] == "7"


def decided() -> Journal:
    """Pods with selectors, taints, spreading and preemption, some of which fit nowhere."""
    journal, frameworks = Journal(), make_frameworks(load_configuration())
    engine = make_engine(frameworks, lambda num_ties: num_ties - 1, journal=journal)
    nodes = [make_node(f"savanna-{zone}", cpu="2", zone=f"zone-{zone}") for zone in "abc"]
    engine.handle([NodeSeen(each) for each in nodes], 0.0)
    pods = [
        make_pod("lion", cpu="1", node_selector={ZONE: "zone-b"}, scheduler_name="stowage"),
        make_pod("zebra", cpu="1", labels={"herd": "big"}, scheduler_name="stowage"),
        make_pod("giraffe", cpu="7", scheduler_name="stowage"),
        make_pod("king", cpu="2", priority=9, scheduler_name="stowage"),
    ]
    engine.handle([PendingPodSeen(each) for each in pods], 1.0)
    engine.schedule(2.0, 10)
    engine.handle([], 400.0)
    engine.schedule(401.0, 10)
    return journal


def repeat(journal: Journal, change: Callable[[Any], Any] = lambda entry: entry) -> None:
    """Replay an anonymous recording of the calls."""
    anonymous = Journal()
    for entry in decode_calls(CallEncoder(Anonymiser()).encode(journal.entries)):
        assert not hasattr(entry, "reason")
        anonymous.record(change(entry))
    frameworks = make_frameworks(load_configuration())
    replay(anonymous, lambda choose, *_: make_engine(frameworks, choose))


def test_the_replay_of_an_anonymous_recording_is_equal() -> None:
    repeat(decided())


def test_the_replay_of_an_anonymous_recording_finds_a_difference() -> None:
    def without_events(entry: Any) -> Any:
        return replace(entry, events=()) if isinstance(entry, HandleCall) else entry

    with pytest.raises(ReplayDiverged):
        repeat(decided(), without_events)
