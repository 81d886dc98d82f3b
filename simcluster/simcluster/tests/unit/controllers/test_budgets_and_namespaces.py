"""Disruption budgets, deletion of namespaces, and garbage collection of dependents."""

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
from simcluster.tests.support.manual_cluster import ManualCluster, template, workload

Json = dict[str, Any]


def budget(**spec: Any) -> Json:
    selector = {"matchLabels": {"app": "web"}}
    return {"metadata": {"name": "web"}, "spec": {"selector": selector, **spec}}


def counts(cluster: ManualCluster) -> tuple[int, int, int, int]:
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
def test_a_budget_counts_healthy_pods_and_allowed_disruptions(
    spec: Json, want: tuple[int, int, int, int]
) -> None:
    cluster = ManualCluster()
    cluster.create(DEPLOYMENTS, workload(replicas=4))
    cluster.create(POD_DISRUPTION_BUDGETS, budget(**spec))
    cluster.settle()
    assert counts(cluster) == want


def test_expected_pods_are_those_of_the_deployment_not_of_its_replica_sets() -> None:
    cluster = ManualCluster()
    cluster.create(DEPLOYMENTS, workload(replicas=4))
    cluster.create(POD_DISRUPTION_BUDGETS, budget(maxUnavailable=1))
    cluster.settle()
    stuck = template("web:2", volumes=[{"name": "v", "emptyDir": {}}])
    cluster.change(DEPLOYMENTS, "web", lambda obj: obj["spec"].update(template=stuck))
    assert len(cluster.all(REPLICA_SETS)) == 2
    assert counts(cluster)[0] == 4


def test_a_disrupted_pod_counts_as_unhealthy_for_two_minutes() -> None:
    cluster = ManualCluster()
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


def test_a_changed_selector_changes_the_counts_of_a_budget() -> None:
    cluster = ManualCluster()
    cluster.create(REPLICA_SETS, workload(replicas=3))
    cluster.create(POD_DISRUPTION_BUDGETS, budget(minAvailable=1))
    cluster.settle()
    other = {"matchLabels": {"app": "other"}}
    cluster.change(POD_DISRUPTION_BUDGETS, "web", lambda obj: obj["spec"].update(selector=other))
    assert counts(cluster)[0] == 0


def test_a_terminating_namespace_reports_remaining_objects_until_it_is_deleted() -> None:
    cluster = ManualCluster()
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
def test_the_propagation_policy_decides_about_dependents(policy: str, left: int) -> None:
    cluster = ManualCluster()
    cluster.create(REPLICA_SETS, workload())
    cluster.settle()
    cluster.delete(REPLICA_SETS, "web", policy)
    cluster.pass_time(1)
    assert cluster.names(REPLICA_SETS) == []
    assert len(cluster.names(PODS)) == left


def test_an_object_is_deleted_with_its_last_owner() -> None:
    cluster = ManualCluster()
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


def test_every_namespace_gets_a_service_account_when_enabled() -> None:
    options = ControllerOptions(with_service_accounts=True, authority_pem="PEM")
    cluster = ManualCluster(options=options)
    cluster.create(NAMESPACES, {"metadata": {"name": "team"}})
    cluster.settle()
    assert cluster.find(SERVICE_ACCOUNTS, "default", "team") is not None
    assert cluster.get(CONFIG_MAPS, "kube-root-ca.crt", "team")["data"] == {"ca.crt": "PEM"}
    cluster.delete(SERVICE_ACCOUNTS, "default", namespace="team")
    assert cluster.find(SERVICE_ACCOUNTS, "default", "team") is not None
