"""What-if answers: where pods would go, and what changes of nodes would do."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from stowage.analysis.cluster_objects import ClusterObjects
from stowage.analysis.explain_pod import NotInCluster
from stowage.analysis.what_if import KeptPod, Question, StillPending, WhatIfAnswer, what_if
from stowage.api.objects.meta import (
    ApiStruct,
    Condition,
    LabelSelector,
    ObjectMeta,
    OwnerReference,
)
from stowage.api.objects.node import Taint
from stowage.api.objects.pod import PodResourceClaim
from stowage.api.objects.policy import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
)
from stowage.api.objects.volume import PersistentVolumeClaim, StorageClass
from tests.support.builders import ZONE, make_node, make_pod, owned_by
from tests.support.clusters import loaded_cluster
from tests.support.device_builders import make_claim as make_device_claim
from tests.support.device_builders import make_class as make_device_class
from tests.support.device_builders import make_slice, pod_with_claims, request
from tests.support.volume_builders import (
    claim_volume,
    make_claim,
    make_class,
    make_csi_node,
    make_volume,
)

REPLICA_SET = owned_by("ReplicaSet", "web", "rs")
DAEMON_SET = owned_by("DaemonSet", "agent", "ds")


def created(*objects: ApiStruct) -> ClusterObjects:
    made = ClusterObjects()
    for obj in objects:
        made.add(obj)
    return made


def nodes_of(answer: WhatIfAnswer) -> dict[str, str]:
    return {each.pod: each.node for each in answer.placed}


def names(pods: Iterable[StillPending | KeptPod]) -> list[str]:
    return [each.pod for each in pods]


def budget(allowed: int) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        ObjectMeta(name="web", namespace="default", uid="pdb"),
        PodDisruptionBudgetSpec(LabelSelector({"app": "web"})),
        PodDisruptionBudgetStatus(allowed),
    )


def test_new_pods_go_where_the_scheduler_would_put_them() -> None:
    cluster = loaded_cluster(make_node("small", cpu="2"), make_node("large", cpu="8"))
    pods = created(make_pod("a", cpu="4"), make_pod("b", cpu="4"), make_pod("c", cpu="4"))
    answer = what_if(cluster, Question(objects=pods))
    assert nodes_of(answer) == {"default/a": "large", "default/b": "large"}
    (pending,) = answer.pending
    assert pending.pod == "default/c"
    assert pending.message.startswith("0/2 nodes are available: 2 Insufficient cpu.")
    assert (answer.before.placed, answer.after.placed, answer.after.pending) == (0, 2, 1)
    assert answer.after.utilisation["cpu"] == 0.8


def test_the_pods_of_manifests_come_before_those_that_waited() -> None:
    waiting = [make_pod("a", cpu="1"), make_pod("b", cpu="9")]
    cluster = loaded_cluster(make_node("n", cpu="4"), *waiting)
    new = created(make_pod("y", cpu="1"), make_pod("z", cpu="9"))
    answer = what_if(cluster, Question(objects=new))
    assert [each.pod for each in answer.placed] == ["default/y", "default/a"]
    assert names(answer.pending) == ["default/z", "default/b"]


def test_a_pending_pod_keeps_the_message_of_its_condition() -> None:
    waiting = make_pod("waiting", cpu="9")
    first = what_if(loaded_cluster(make_node("n", cpu="4")), Question(objects=created(waiting)))
    message = first.pending[0].message
    conditions = (
        Condition(type="PodScheduled", status="False", reason="Unschedulable", message=message),
    )
    status = replace(waiting.status, conditions=conditions)
    cluster = loaded_cluster(make_node("n", cpu="4"), replace(waiting, status=status))
    (pending,) = what_if(cluster, Question()).pending
    assert message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert pending.message == message


def test_a_pod_that_has_a_node_stays_although_a_manifest_names_it() -> None:
    cluster = loaded_cluster(make_node("n", cpu="4"), make_pod("web-0", cpu="3", node="n"))
    pods = created(make_pod("web-0", uid="new-0", cpu="3"), make_pod("web-1", cpu="1"))
    answer = what_if(cluster, Question(objects=pods))
    assert nodes_of(answer) == {"default/web-1": "n"}
    assert answer.after.requested["cpu"] == "4"
    assert answer.notes[0] == "default/web-0 is on node n already: it stays as it is"


@pytest.mark.parametrize(
    ("owner", "hashed"), [("web-5f7d9c", "5f7d9c"), ("web", None), ("other", None)]
)
def test_pods_of_the_workload_that_run_already_are_counted_in_a_note(
    owner: str, hashed: str | None
) -> None:
    labels = {} if hashed is None else {"pod-template-hash": hashed}
    running = [
        make_pod(name, node="n", labels=labels, owner=owned_by("ReplicaSet", owner, "old"))
        for name in (f"{owner}-a", f"{owner}-b")
    ]
    cluster = loaded_cluster(make_node("n"), *running, make_pod("alone", node="n"))
    new = created(make_pod("web-0", owner=REPLICA_SET), make_pod("web-1", owner=REPLICA_SET))
    answer = what_if(cluster, Question(objects=new))
    note = "pods that default/web has already: 2; those of the manifest are added"
    assert (note in answer.notes) == (owner != "other")
    assert answer.after.placed == 5


def test_pods_of_a_stateful_set_that_a_manifest_names_again_are_no_others() -> None:
    owner = owned_by("StatefulSet", "db", "db")
    cluster = loaded_cluster(make_node("n"), make_pod("db-0", node="n", owner=owner))
    new = created(make_pod("db-0", owner=owner), make_pod("db-1", owner=owner))
    first, *others = what_if(cluster, Question(objects=new)).notes
    assert first == "default/db-0 is on node n already: it stays as it is"
    assert not any("already" in note for note in others)


def test_no_note_says_that_pods_are_added_if_all_of_them_stay() -> None:
    owner = owned_by("StatefulSet", "db", "db")
    running = [make_pod(f"db-{index}", node="n", owner=owner) for index in range(2)]
    cluster = loaded_cluster(make_node("n"), *running)
    answer = what_if(cluster, Question(objects=created(make_pod("db-0", owner=owner))))
    assert answer.notes == ("default/db-0 is on node n already: it stays as it is",)


def test_a_drained_pod_without_a_controller_is_placed_again_if_a_manifest_names_it() -> None:
    cluster = loaded_cluster(make_node("a"), make_node("b"), make_pod("p", node="a"))
    new = created(make_pod("p", uid="new"))
    answer = what_if(cluster, Question(drain=["a"], objects=new))
    assert (nodes_of(answer), answer.deleted) == ({"default/p": "b"}, ("default/p",))


def test_a_manifest_replaces_a_pending_pod_of_the_same_name() -> None:
    cluster = loaded_cluster(make_node("n", cpu="4"), make_pod("p", cpu="9"))
    answer = what_if(cluster, Question(objects=created(make_pod("p", uid="new", cpu="1"))))
    assert nodes_of(answer) == {"default/p": "n"}
    assert (answer.before.pending, answer.after.pending) == (1, 0)
    cluster.engine.validate()
    assert len(cluster.engine.state.queue) == 0


def test_a_pod_without_a_condition_names_the_plugin_s_reason() -> None:
    claim = PodResourceClaim(name="gpu", resource_claim_name="none")
    waiting = created(make_pod("p", resource_claims=(claim,)))
    (pending,) = what_if(loaded_cluster(make_node("n")), Question(objects=waiting)).pending
    assert pending.message == 'could not find ResourceClaim "default/none"'


def test_a_gated_pod_names_its_gates_also_if_its_condition_does_not() -> None:
    gated = make_pod("gated", gates=["g"])
    answer = what_if(loaded_cluster(make_node("n")), Question(objects=created(gated)))
    assert [each.message for each in answer.pending] == ["waiting for scheduling gates: [g]"]
    blocked = Condition(type="PodScheduled", status="False", message="Scheduling is blocked")
    told = replace(gated, status=replace(gated.status, conditions=(blocked,)))
    answer = what_if(loaded_cluster(make_node("n"), told), Question())
    assert [each.message for each in answer.pending] == ["waiting for scheduling gates: [g]"]


def test_pods_that_are_not_scheduled_say_why() -> None:
    pods = (make_pod("going", terminating=True), make_pod("invalid", cpu="abc"))
    answer = what_if(loaded_cluster(make_node("n"), *pods), Question())
    assert {each.pod: each.message for each in answer.pending} == {
        "default/going": "it is being deleted: it is not scheduled",
        "default/invalid": "it is invalid: it is not scheduled",
    }


def test_a_tie_is_marked() -> None:
    cluster = loaded_cluster(make_node("one"), make_node("two"), make_node("far", cpu="1"))
    answer = what_if(cluster, Question(objects=created(make_pod("tied"))))
    assert [(each.pod, each.tied) for each in answer.placed] == [("default/tied", True)]


def test_a_preemptor_gets_its_node_and_the_victim_is_named() -> None:
    low = make_pod("low", cpu="4", node="n", priority=1)
    cluster = loaded_cluster(make_node("n", cpu="4"), low)
    answer = what_if(cluster, Question(objects=created(make_pod("high", cpu="4", priority=9))))
    assert nodes_of(answer) == {"default/high": "n"}
    assert [(each.pod, each.node, each.preemptor) for each in answer.preempted] == [
        ("default/low", "n", "default/high")
    ]


def test_a_victim_with_a_controller_is_made_again_and_may_find_another_node() -> None:
    low = make_pod("low", cpu="2", node="n", priority=1, owner=REPLICA_SET)
    cluster = loaded_cluster(make_node("n", cpu="4"), make_node("spare", cpu="2"), low)
    answer = what_if(cluster, Question(objects=created(make_pod("high", cpu="4", priority=9))))
    assert nodes_of(answer) == {"default/high": "n", "default/low": "spare"}
    assert {each.pod: each.was for each in answer.placed}["default/low"] == "n"


def test_a_drained_node_loses_the_pods_that_may_move() -> None:
    cluster = loaded_cluster(
        make_node("old"),
        make_node("new"),
        make_pod("replica", node="old", owner=REPLICA_SET),
        make_pod("agent", node="old", owner=DAEMON_SET),
        make_pod("lone", node="old"),
    )
    answer = what_if(cluster, Question(drain=["old"]))
    assert nodes_of(answer) == {"default/replica": "new"}
    assert names(answer.kept) == ["default/agent"]
    assert answer.deleted == ("default/lone",)


def test_a_drain_stops_at_a_disruption_budget() -> None:
    web = {"app": "web"}
    cluster = loaded_cluster(
        make_node("old"),
        make_node("new", cpu="1"),
        *(make_pod(f"w{i}", cpu="1", node="old", labels=web, owner=REPLICA_SET) for i in range(3)),
        budget(allowed=1),
    )
    answer = what_if(cluster, Question(drain=["old"]))
    assert nodes_of(answer) == {"default/w0": "new"}
    assert names(answer.pending) == ["default/w1"]
    assert [(each.pod, each.why) for each in answer.kept] == [
        ("default/w2", "PodDisruptionBudget default/web allows no disruption")
    ]


def test_a_terminating_pod_is_made_again_as_one_that_stays() -> None:
    leaving = make_pod("leaving", node="old", owner=REPLICA_SET, terminating=True)
    cluster = loaded_cluster(make_node("old"), make_node("new"), leaving)
    assert nodes_of(what_if(cluster, Question(drain=["old"]))) == {"default/leaving": "new"}


def test_a_cordoned_node_takes_no_new_pods() -> None:
    cluster = loaded_cluster(make_node("best", cpu="8"), make_node("other"))
    question = Question(cordon=["best"], objects=created(make_pod("p")))
    assert nodes_of(what_if(cluster, question)) == {"default/p": "other"}


def test_added_nodes_take_pending_pods() -> None:
    full = make_pod("full", cpu="4", node="n")
    cluster = loaded_cluster(
        make_node("n", cpu="4", unschedulable=True),
        full,
        *(make_pod(f"p{i}", cpu="4") for i in range(3)),
    )
    answer = what_if(cluster, Question(add_nodes=[(2, "n")]))
    assert answer.added_nodes == ("n-new-1", "n-new-2")
    assert sorted(nodes_of(answer).values()) == ["n-new-1", "n-new-2"]
    assert names(answer.pending) == ["default/p2"]
    assert (answer.before.nodes, answer.after.nodes) == (1, 3)


def test_an_added_node_has_the_taints_of_its_model_but_not_those_of_its_state() -> None:
    """The node controller taints each cordoned node; a new one is not cordoned."""
    cordoned = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
    own = Taint(key="dedicated", value="db", effect="NoSchedule")
    for taints, placed in (([cordoned], {"default/p": "n-new-1"}), ([cordoned, own], {})):
        cluster = loaded_cluster(make_node("n", unschedulable=True, taints=taints), make_pod("p"))
        assert nodes_of(what_if(cluster, Question(add_nodes=[(1, "n")]))) == placed


def test_an_added_node_has_the_labels_of_its_model_with_its_own_name() -> None:
    labels = {"topology.example.com/node": "n", "disk": "ssd"}
    wanted = {"topology.example.com/node": "n-new-1", "disk": "ssd"}
    cluster = loaded_cluster(make_node("n", labels=labels), make_pod("p", node_selector=wanted))
    assert nodes_of(what_if(cluster, Question(add_nodes=[(1, "n")]))) == {"default/p": "n-new-1"}


def test_added_nodes_have_the_devices_of_their_model() -> None:
    own = {"name": "own", "generation": 1, "resourceSliceCount": 1}
    cluster = loaded_cluster(
        make_node("n"),
        make_node("other"),
        make_device_class(),
        make_slice("n", ["d"]),
        make_slice("n", ["e"], name="own", pool=own),
        *(make_device_claim(f"c{i}", request()) for i in range(4)),
        *(pod_with_claims(f"p{i}", f"c{i}") for i in range(4)),
    )
    answer = what_if(cluster, Question(add_nodes=[(1, "n")]))
    assert sorted(nodes_of(answer).values()) == ["n", "n", "n-new-1", "n-new-1"]


def test_an_added_node_has_its_share_of_a_pool_with_slices_of_several_nodes() -> None:
    pool = {"name": "rack", "generation": 1, "resourceSliceCount": 3}
    cluster = loaded_cluster(
        make_node("n"),
        make_node("other"),
        make_device_class(),
        make_slice("n", ["a"], name="s0", pool=pool),
        make_slice("n", ["b"], name="s1", pool=pool),
        make_slice("other", ["c"], name="s2", pool=pool),
        *(make_device_claim(f"c{i}", request()) for i in range(6)),
        *(pod_with_claims(f"p{i}", f"c{i}") for i in range(6)),
    )
    answer = what_if(cluster, Question(add_nodes=[(1, "n")]))
    nodes = sorted(nodes_of(answer).values())
    assert nodes == ["n", "n", "n-new-1", "n-new-1", "other"]


def test_added_nodes_have_the_volume_limits_of_their_model() -> None:
    cluster = loaded_cluster(
        make_node("n"),
        make_csi_node("n", csi_example_com=1),
        make_class("waits"),
        *(make_volume(f"v{i}", given_to=f"c{i}") for i in range(3)),
        *(make_claim(f"c{i}", volume=f"v{i}") for i in range(3)),
        *(make_pod(f"p{i}", volumes=[claim_volume(f"c{i}")]) for i in range(3)),
    )
    answer = what_if(cluster, Question(add_nodes=[(1, "n")]))
    assert sorted(nodes_of(answer).values()) == ["n", "n-new-1"]
    assert len(answer.pending) == 1


def test_a_note_says_that_added_nodes_lack_the_pods_of_daemon_sets() -> None:
    cluster = loaded_cluster(
        make_node("plain"),
        make_node("served"),
        make_pod("web", node="plain", owner=REPLICA_SET),
        make_pod("agent", node="served", owner=DAEMON_SET),
    )
    answer = what_if(cluster, Question(add_nodes=[(1, "plain"), (2, "served")]))
    (note,) = [each for each in answer.notes if "DaemonSets" in each]
    assert note.startswith("the nodes like served are empty: ")


def test_a_note_says_that_added_nodes_lack_the_pods_of_a_daemon_set_in_a_manifest() -> None:
    new = created(make_pod("agent-plain", owner=DAEMON_SET))
    answer = what_if(loaded_cluster(make_node("plain")), Question([(1, "plain")], objects=new))
    (note,) = [each for each in answer.notes if "DaemonSets" in each]
    assert note.startswith("the nodes like plain are empty: ")


def test_a_removed_node_is_gone_with_the_pods_of_daemon_sets() -> None:
    cluster = loaded_cluster(
        make_node("old"),
        make_node("new"),
        make_pod("replica", node="old", owner=REPLICA_SET),
        make_pod("agent", node="old", owner=DAEMON_SET),
    )
    answer = what_if(cluster, Question(remove_nodes=["old"]))
    assert nodes_of(answer) == {"default/replica": "new"}
    assert (answer.after.nodes, answer.after.placed) == (1, 1)
    assert answer.kept == ()


@pytest.mark.parametrize("owner", [REPLICA_SET, None])
def test_a_pod_that_a_budget_protects_goes_with_its_removed_node(
    owner: OwnerReference | None,
) -> None:
    pod = make_pod("w", node="old", labels={"app": "web"}, owner=owner)
    cluster = loaded_cluster(make_node("old"), make_node("new"), pod, budget(allowed=0))
    answer = what_if(cluster, Question(remove_nodes=["old"]))
    assert nodes_of(answer) == ({"default/w": "new"} if owner else {})
    assert answer.deleted == (() if owner else ("default/w",))
    assert answer.kept == ()
    why = "PodDisruptionBudget default/web allows no disruption"
    assert answer.notes[0] == f"default/w goes with its node, although {why}"


NODES = ["n", "gone"]


@pytest.mark.parametrize(
    "question",
    [
        Question(cordon=NODES),
        Question(drain=NODES),
        Question(remove_nodes=NODES),
        Question(cordon=["n"], add_nodes=[(1, "gone")]),
    ],
)
def test_an_unknown_node_is_an_error_and_changes_nothing(question: Question) -> None:
    cluster = loaded_cluster(make_node("n"), make_pod("p", node="n", owner=REPLICA_SET))
    before = cluster.engine.dump()
    with pytest.raises(NotInCluster, match="there is no node gone"):
        what_if(cluster, question)
    assert cluster.engine.dump() == before


def test_a_claim_is_provisioned_for_the_chosen_node() -> None:
    claim = make_claim("data", "late", version="7")
    cluster = loaded_cluster(make_node("n"), make_class("late"), claim)
    pod = make_pod("p", volumes=(claim_volume("data"),))
    answer = what_if(cluster, Question(objects=created(pod)))
    assert nodes_of(answer) == {"default/p": "n"}
    bound = cluster.objects.find(PersistentVolumeClaim, "default/data")
    assert bound is not None
    assert bound.spec.volume_name
    assert cluster.objects.of_kind(StorageClass)


def test_a_claim_that_kubectl_has_applied_is_provisioned_at_the_first_attempt() -> None:
    claim = make_claim("data", "late", version="7")
    applied = replace(claim, metadata=replace(claim.metadata, annotations={"applied-by": "me"}))
    cluster = loaded_cluster(
        make_node("small", cpu="2", zone="a"),
        make_node("large", cpu="8", zone="b"),
        make_class("late", topology=(ZONE, ["a"])),
        applied,
    )
    pod = make_pod("p", cpu="1", volumes=(claim_volume("data"),))
    assert nodes_of(what_if(cluster, Question(objects=created(pod)))) == {"default/p": "small"}


def test_a_provisioned_volume_is_reached_from_the_zone_of_the_chosen_node() -> None:
    cluster = loaded_cluster(
        make_node("large", cpu="8", zone="a"),
        make_node("near", cpu="4", zone="a"),
        make_node("far", cpu="6", zone="b"),
        make_class("late"),
        make_claim("data", "late", version="7"),
    )
    volumes = (claim_volume("data"),)
    pods = [make_pod(name, cpu="4", volumes=volumes) for name in ("a", "b", "c", "d")]
    answer = what_if(cluster, Question(objects=created(*pods)))
    assert nodes_of(answer) == {"default/a": "large", "default/b": "large", "default/c": "near"}
    assert names(answer.pending) == ["default/d"]


def test_a_claim_gets_a_free_volume_that_the_chosen_node_reaches() -> None:
    claim = make_claim("data", "late", version="7")
    volume = make_volume("free", "late", version="8")
    cluster = loaded_cluster(make_node("n"), make_class("late"), claim, volume)
    pod = make_pod("p", volumes=(claim_volume("data"),))
    assert nodes_of(what_if(cluster, Question(objects=created(pod)))) == {"default/p": "n"}
    bound = cluster.objects.find(PersistentVolumeClaim, "default/data")
    assert bound is not None
    assert bound.spec.volume_name == "free"


def test_the_engine_is_consistent_afterwards() -> None:
    cluster = loaded_cluster(
        make_node("a"), make_node("b"), make_pod("p", node="a", owner=REPLICA_SET)
    )
    what_if(cluster, Question(drain=["a"], add_nodes=[(1, "b")]))
    cluster.engine.validate()


@pytest.mark.parametrize(("policy", "tied"), [("RoundRobin", True), ("FixedOrder", False)])
def test_a_tie_is_marked_if_the_running_scheduler_may_take_another_node(
    policy: str, tied: bool
) -> None:
    """Whose turn it is with RoundRobin depends on the pods that the scheduler has placed."""
    profile = {"schedulerName": "default-scheduler", "tieBreaking": {"type": policy}}
    cluster = loaded_cluster(make_node("one"), make_node("two"), profile=profile)
    answer = what_if(cluster, Question(objects=created(make_pod("p"))))
    assert [each.tied for each in answer.placed] == [tied]
