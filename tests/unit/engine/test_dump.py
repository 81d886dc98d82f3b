"""The state as plain data names what the engine is doing with each pod."""

from __future__ import annotations

from stowage.api.events import AssignedPodSeen, NodeSeen, PendingPodSeen
from tests.support.builders import make_node, make_pod
from tests.support.engines import default_engine


def test_the_dump_shows_bindings_preemptions_and_nominations() -> None:
    engine = default_engine()
    victim = make_pod("victim", cpu="2", node="full", priority=-1)
    nodes = [NodeSeen(make_node(name, cpu="2")) for name in ("full", "free")]
    engine.handle([*nodes, AssignedPodSeen(victim), PendingPodSeen(make_pod("p", cpu="2"))], 0.0)
    engine.schedule(0.0, 1)
    engine.handle([PendingPodSeen(make_pod("q", cpu="2", priority=9))], 0.0)
    engine.schedule(0.0, 1)
    dump = engine.dump()
    assert dump["bindings"] == {"default/p": {"node": "free", "phase": "binding"}}
    assert dump["nominations"] == {"default/q": "full"}
    assert dump["preemptions"] == [
        {
            "preemptor": "default/q",
            "node": "full",
            "awaited": ["uid-victim"],
            "last": "default/victim",
        }
    ]
    assert dump["nodes"]["full"]["pods"] == ["default/victim (added)"]
    assert dump["nodes"]["free"]["pods"] == ["default/p (assumed)"]
    (waiting,) = dump["queue"]["unschedulable"]
    assert (waiting["pod"], waiting["attempts"]) == ("default/q", 1)
    assert (dump["consultations"], dump["storage_assumed"], dump["unconfirmed"]) == ({}, {}, [])
