"""Disruption budgets, namespaces that go, owners that take along what is theirs."""

from typing import Any

import pytest

from simcluster.apiserver.errors import ApiError
from simcluster.controllers import ControllerOptions
from simcluster.kinds.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    NAMESPACES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    SERVICE_ACCOUNTS,
)
from simcluster.kinds.subresources.eviction import evict
from tests.support.still_cluster import StillCluster, template, workload

Json = dict[str, Any]


def budget(**spec: Any) -> Json:
    selector = {"matchLabels": {"app": "web"}}
    return {"metadata": {"name": "web"}, "spec": {"selector": selector, **spec}}


def counts(cluster: StillCluster) -> tuple[int, int, int, int]:
    status = cluster.get(POD_DISRUPTION_BUDGETS, "web")["status"]
    keys = ("expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed")
    expected, healthy, desired, allowed = (status[key] for key in keys)
    return expected, healthy, desired, allowed


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        ({"minAvailable": 2}, (4, 4, 2, 2)),
        ({"minAvailable": "60%"}, (4, 4, 3, 1)),
        ({"maxUnavailable": 1}, (4, 4, 3, 1)),
        ({"maxUnavailable": "30%"}, (4, 4, 2, 2)),
        ({"minAvailable": 9}, (4, 4, 9, 0)),
    ],
)
def test_budgets_count(spec: Json, want: tuple[int, int, int, int]) -> None:
    cluster = StillCluster()
    cluster.create(DEPLOYMENTS, workload(replicas=4))
    cluster.create(POD_DISRUPTION_BUDGETS, budget(**spec))
    cluster.settle()
    assert counts(cluster) == want


def test_two_sets_of_one_deployment_are_expected_once() -> None:
    cluster = StillCluster()
    cluster.create(DEPLOYMENTS, workload(replicas=4))
    cluster.create(POD_DISRUPTION_BUDGETS, budget(maxUnavailable=1))
    cluster.settle()
    stuck = template("web:2", volumes=[{"name": "v", "emptyDir": {}}])
    cluster.change(DEPLOYMENTS, "web", lambda obj: obj["spec"].update(template=stuck))
    assert len(cluster.all(REPLICA_SETS)) == 2
    assert counts(cluster)[0] == 4


def test_an_evicted_pod_is_remembered_until_it_is_gone_or_too_long_there() -> None:
    cluster = StillCluster()
    spec = workload(replicas=3)
    spec["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 900
    cluster.create(REPLICA_SETS, spec)
    cluster.create(POD_DISRUPTION_BUDGETS, budget(minAvailable=2))
    cluster.settle()
    name = cluster.names(PODS)[0]
    evict(cluster.registry, "default", name, {"deleteOptions": {"dryRun": ["All"]}})
    status = cluster.get(POD_DISRUPTION_BUDGETS, "web")["status"]
    assert "disruptedPods" not in status
    cluster.registry.change_status(
        POD_DISRUPTION_BUDGETS,
        "default",
        "web",
        lambda obj: {**obj["status"], "disruptedPods": {name: cluster.registry.clock.now()}},
    )
    cluster.settle()
    assert counts(cluster)[1] == 2
    cluster.pass_time(121)
    assert counts(cluster)[1] == 3


def test_a_budget_that_selects_other_pods_counts_those() -> None:
    cluster = StillCluster()
    cluster.create(REPLICA_SETS, workload(replicas=3))
    cluster.create(POD_DISRUPTION_BUDGETS, budget(minAvailable=1))
    cluster.settle()
    other = {"matchLabels": {"app": "other"}}
    cluster.change(POD_DISRUPTION_BUDGETS, "web", lambda obj: obj["spec"].update(selector=other))
    assert counts(cluster)[0] == 0


def test_a_namespace_tells_what_is_left_and_goes_when_nothing_is() -> None:
    cluster = StillCluster()
    cluster.create(NAMESPACES, {"metadata": {"name": "team"}})
    held = {"metadata": {"name": "held", "finalizers": ["example.com/hold"]}}
    cluster.create(CONFIG_MAPS, held, "team")
    cluster.create(DEPLOYMENTS, workload(), "team")
    cluster.settle()
    cluster.delete(NAMESPACES, "team")
    cluster.pass_time(1)
    status = cluster.get(NAMESPACES, "team")["status"]
    assert status["phase"] == "Terminating"
    messages = {found["type"]: found["message"] for found in status["conditions"]}
    assert messages["NamespaceFinalizersRemaining"] == (
        "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource "
        "instances"
    )
    assert cluster.names(PODS) == []
    with pytest.raises(ApiError, match="because it is being terminated"):
        cluster.create(CONFIG_MAPS, {"metadata": {"name": "new"}}, "team")
    cluster.change(CONFIG_MAPS, "held", lambda obj: obj["metadata"].pop("finalizers"), "team")
    assert cluster.find(NAMESPACES, "team") is None


@pytest.mark.parametrize(("policy", "left"), [("Background", 0), ("Foreground", 0), ("Orphan", 3)])
def test_what_is_owned_goes_as_it_is_told(policy: str, left: int) -> None:
    cluster = StillCluster()
    cluster.create(REPLICA_SETS, workload())
    cluster.settle()
    cluster.delete(REPLICA_SETS, "web", policy)
    cluster.pass_time(1)
    assert cluster.names(REPLICA_SETS) == []
    assert len(cluster.names(PODS)) == left


def test_an_object_with_two_owners_loses_the_one_that_went() -> None:
    cluster = StillCluster()
    owners = [cluster.create(CONFIG_MAPS, {"metadata": {"name": name}}) for name in ("a", "b")]
    references = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": owner.name,
            "uid": owner.obj["metadata"]["uid"],
        }
        for owner in owners
    ]
    cluster.create(CONFIG_MAPS, {"metadata": {"name": "c", "ownerReferences": references}})
    cluster.delete(CONFIG_MAPS, "a")
    assert cluster.get(CONFIG_MAPS, "c")["metadata"]["ownerReferences"] == references[1:]
    cluster.delete(CONFIG_MAPS, "b")
    assert cluster.names(CONFIG_MAPS) == []


def test_every_namespace_gets_its_account_where_that_is_wanted() -> None:
    options = ControllerOptions(with_service_accounts=True, authority_pem="PEM")
    cluster = StillCluster(options=options)
    cluster.create(NAMESPACES, {"metadata": {"name": "team"}})
    cluster.settle()
    assert cluster.find(SERVICE_ACCOUNTS, "default", "team") is not None
    assert cluster.get(CONFIG_MAPS, "kube-root-ca.crt", "team")["data"] == {"ca.crt": "PEM"}
    cluster.delete(SERVICE_ACCOUNTS, "default", namespace="team")
    assert cluster.find(SERVICE_ACCOUNTS, "default", "team") is not None
