from __future__ import annotations

from stowage.queue import Nominator
from stowage.state.pods.pod_info import PodInfo
from tests.unit.queue.scenario import pending


def _names(pods: tuple[PodInfo, ...]) -> list[str]:
    return [info.name for info in pods]


def test_a_nomination_is_taken_from_the_status_unless_one_is_given() -> None:
    nominator = Nominator()
    nominator.nominate(pending("a", nominated_node="n1"))
    nominator.nominate(pending("b", nominated_node="n1"), "n2")
    assert _names(nominator.pods_on("n1")) == ["a"]
    assert _names(nominator.pods_on("n2")) == ["b"]
    assert tuple(nominator.nodes()) == ("n1", "n2")


def test_a_pod_is_nominated_to_one_node_at_a_time() -> None:
    nominator = Nominator()
    info = pending("a")
    nominator.nominate(info, "n1")
    nominator.nominate(info, "n2")
    assert nominator.pods_on("n1") == ()
    assert nominator.node_of(info.uid) == "n2"
    assert len(nominator) == 1


def test_an_empty_node_name_clears_the_nomination() -> None:
    nominator = Nominator()
    info = pending("a", nominated_node="n1")
    nominator.nominate(info)
    assert tuple(nominator.nodes()) == ("n1",)
    nominator.nominate(info, "")
    assert info.uid not in nominator
    assert tuple(nominator.nodes()) == ()


def test_an_update_keeps_a_nomination_that_is_not_written_yet() -> None:
    nominator = Nominator()
    nominator.nominate(pending("a"), "n1")
    nominator.update(pending("a"), pending("a", labels={"x": "y"}))
    assert [info.labels for info in nominator.pods_on("n1")] == [{"x": "y"}]


def test_an_update_that_changes_the_nominated_node_is_applied() -> None:
    nominator = Nominator()
    nominator.nominate(pending("a", nominated_node="n1"))
    nominator.update(pending("a", nominated_node="n1"), pending("a", nominated_node="n2"))
    assert tuple(nominator.nodes()) == ("n2",)
    nominator.update(pending("a", nominated_node="n2"), pending("a"))
    assert tuple(nominator.nodes()) == ()


def test_a_refresh_replaces_the_pod_and_keeps_the_node() -> None:
    nominator = Nominator()
    nominator.nominate(pending("a"), "n1")
    nominator.refresh(pending("a", nominated_node="n9"))
    nominator.refresh(pending("stranger", nominated_node="n9"))
    assert tuple(nominator.nodes()) == ("n1",)
    assert nominator.pods_on("n1")[0].nominated_node_name == "n9"


def test_pods_of_the_same_name_are_distinguished_by_uid() -> None:
    nominator = Nominator()
    nominator.nominate(pending("a", uid="old"), "n1")
    nominator.nominate(pending("a", uid="new"), "n1")
    nominator.remove("old")
    assert [info.uid for info in nominator.pods_on("n1")] == ["new"]


def test_the_generation_grows_only_with_changes() -> None:
    nominator = Nominator()
    info = pending("a")
    before = nominator.generation
    nominator.remove(info.uid)
    nominator.refresh(info)
    assert nominator.generation == before
    nominator.nominate(info, "n1")
    after = nominator.generation
    nominator.remove(info.uid)
    assert before < after < nominator.generation


class _ForgetfulNominator(Nominator):
    def forget_nodes(self) -> None:
        self._node_of.clear()


def test_inconsistencies_between_the_indices_are_reported() -> None:
    nominator = _ForgetfulNominator()
    nominator.nominate(pending("a"), "n1")
    nominator.forget_nodes()
    assert list(nominator.inconsistencies()) == ["nominations by pod and by node differ"]
