"""kubectl against an API server without controllers."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from simcluster.tests.contract.test_custom_resources import WIDGET, widget
from tests.support.api_client import node, pod
from tests.support.api_servers import ApiServerUnderTest
from tests.support.patience import PATIENCE_S

WAIT = f"--timeout={PATIENCE_S:g}s"
KUBECTL = Path(sys.executable).parent / "kubectl"
pytestmark = pytest.mark.skipif(not KUBECTL.exists(), reason="kubectl is not installed")

Kubectl = Callable[..., str]


@pytest.fixture(scope="module")
def kubectl(secure_server: ApiServerUnderTest, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    """Runs kubectl, which must succeed unless told otherwise, and returns what it prints."""
    home = tmp_path_factory.mktemp("home")
    environment = {**os.environ, "KUBECONFIG": str(secure_server.kubeconfig), "HOME": str(home)}

    def run(*arguments: str, stdin: str = "", succeeds: bool = True) -> str:
        done = subprocess.run(
            [str(KUBECTL), *arguments],
            check=False,
            env=environment,
            input=stdin.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE_S,
        )
        text = done.stdout.decode()
        assert (done.returncode == 0) is succeeds, text
        return text

    return run


@pytest.fixture(scope="module")
def furnished(kubectl: Kubectl) -> Kubectl:
    """With two nodes, a pod and the widget's definition."""
    objects = [node("one"), node("two", "z2"), pod("p"), WIDGET]
    kubectl("create", "-f", "-", stdin=yaml.safe_dump_all(objects))
    kubectl("wait", "--for=condition=Established", f"crd/{WIDGET['metadata']['name']}", WAIT)
    return kubectl


def test_kinds_versions_and_server_are_reported(furnished: Kubectl) -> None:
    kinds = furnished("api-resources", "-o", "wide")
    for line in ("pods", "deployments", "priorityclasses", "widgets"):
        assert f"\n{line} " in kinds
    assert "create,delete,deletecollection,get,list,patch,update,watch" in kinds
    versions = furnished("api-versions").split()
    assert {"v1", "apps/v1", "policy/v1", "example.com/v1", "example.com/v1beta1"} <= set(versions)
    version = json.loads(furnished("version", "-o", "json"))["serverVersion"]
    assert (version["major"], version["minor"]) == ("1", "36")
    assert "is running at" in furnished("cluster-info")


def test_fields_are_explained(furnished: Kubectl) -> None:
    containers = furnished("explain", "pod.spec.containers")
    assert "FIELD: containers <[]Container>" in containers
    assert "image\t<string>" in containers
    assert "-required-" in containers
    deep = furnished("explain", "deployment", "--recursive")
    assert "GROUP:      apps" in deep
    assert "topologySpreadConstraints\t<[]TopologySpreadConstraint>" in deep
    assert "size\t<integer> -required-" in furnished("explain", "widget.spec")
    missing = furnished("explain", "pod.spec.nosuch", succeeds=False)
    assert 'field "nosuch" does not exist' in missing


def test_lists_are_shown_in_every_form(furnished: Kubectl) -> None:
    assert furnished("get", "nodes", "-o", "name").split() == ["node/one", "node/two"]
    assert furnished("get", "nodes", "-o", "name", "--chunk-size=1").split() == [
        "node/one",
        "node/two",
    ]
    path = "custom-columns=NAME:.metadata.name,CPU:.status.capacity.cpu"
    assert furnished("get", "nodes", "-o", path).split() == ["NAME", "CPU", "one", "4", "two", "4"]
    ordered = furnished("get", "nodes", "--sort-by={.metadata.name}", "-o", "name")
    assert ordered.split() == ["node/one", "node/two"]
    labelled = furnished("get", "nodes", "-l", "topology.kubernetes.io/zone in (z2)").split()
    assert ("one" in labelled, "two" in labelled) == (False, True)
    pods = furnished("get", "pods", "-A", "--field-selector=spec.nodeName=", "--show-labels")
    assert "app=p" in pods
    wide = furnished("get", "pods", "-o", "wide").splitlines()[0]
    assert wide.split("  ")[0] == "NAME"
    assert "NOMINATED NODE" in wide
    refused = furnished("get", "pods", "--field-selector=spec.image=x", succeeds=False)
    assert "field label not supported: spec.image" in refused


def test_custom_resources_are_worked_with(furnished: Kubectl) -> None:
    text = yaml.safe_dump(widget("w"))
    assert furnished("apply", "-f", "-", stdin=text) == "widget.example.com/w created\n"
    assert furnished("apply", "-f", "-", stdin=text) == "widget.example.com/w unchanged\n"
    changed = yaml.safe_dump(widget("w", color="blue"))
    assert "configured" in furnished("apply", "-f", "-", stdin=changed)
    shown = furnished("get", "wd").splitlines()
    assert shown[0].split() == ["NAME", "SIZE", "READY", "AGE"]
    assert shown[1].split()[:2] == ["w", "3"]
    assert furnished("scale", "wd/w", "--replicas=3") == "widget.example.com/w scaled\n"
    furnished(
        "patch", "wd", "w", "--subresource=status", "--type=merge", "-p",
        '{"status":{"conditions":[{"type":"Ready","status":"True"}]}}',
    )  # fmt: skip
    assert "met" in furnished("wait", "--for=condition=Ready", "wd/w", WAIT)
    refused = furnished(
        "patch", "wd", "w", "--type=merge", "-p", '{"spec":{"size":99}}', succeeds=False
    )
    assert "spec.size in body should be less than or equal to 10" in refused
    unknown = yaml.safe_dump(widget("w", nosuch=1))
    strict = furnished("apply", "-f", "-", stdin=unknown, succeeds=False)
    assert 'unknown field "spec.nosuch"' in strict
    assert "Color:" in furnished("describe", "wd", "w")
    assert "deleted" in furnished("delete", "wd", "w")


def test_auth_whoami_and_can_i(furnished: Kubectl) -> None:
    assert "system:masters" in furnished("auth", "whoami")
    assert furnished("auth", "can-i", "create", "pods").strip() == "yes"
    assert furnished("auth", "can-i", "get", "pods", "--as=jane", succeeds=False).strip() == "no"
    everything = furnished("auth", "can-i", "--list")
    assert "*.*" in everything
    furnished("create", "serviceaccount", "robot")
    furnished("create", "role", "reader", "--verb=get,list", "--resource=pods")
    furnished("create", "rolebinding", "reader", "--role=reader", "--serviceaccount=default:robot")
    robot = "--as=system:serviceaccount:default:robot"
    assert furnished("auth", "can-i", "list", "pods", robot).strip() == "yes"
    listed = furnished("auth", "can-i", "--list", robot)
    assert "pods" in listed
    assert "[get list]" in listed
    token = furnished("create", "token", "robot").strip()
    assert token.count(".") == 2
    refused = furnished("get", "nodes", robot, succeeds=False)
    assert refused == (
        "Error from server (Forbidden): nodes is forbidden: User "
        '"system:serviceaccount:default:robot" cannot list resource "nodes" in API group "" at '
        "the cluster scope\n"
    )


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (("quota", "q", "--hard=cpu=1"), "resourcequota/q"),
        (("cronjob", "c", "--image=x", "--schedule=* * * * *"), "cronjob.batch/c"),
        (("job", "j", "--image=x"), "job.batch/j"),
        (("ingress", "i", "--rule=a.example/=s:80"), "ingress.networking.k8s.io/i"),
        (("service", "clusterip", "s", "--tcp=80:8080"), "service/s"),
        (("secret", "generic", "s", "--from-literal=a=b"), "secret/s"),
        (("configmap", "m", "--from-literal=a=b"), "configmap/m"),
        (("priorityclass", "high", "--value=5"), "priorityclass.scheduling.k8s.io/high"),
        (("pdb", "b", "--selector=a=b", "--min-available=1"), "poddisruptionbudget.policy/b"),
        (("clusterrole", "r", "--verb=get", "--resource=pods"),
         "clusterrole.rbac.authorization.k8s.io/r"),
    ],
)  # fmt: skip
def test_every_kind_is_created_by_its_subcommand(
    furnished: Kubectl, arguments: tuple[str, ...], shown: str
) -> None:
    assert furnished("create", *arguments) == f"{shown} created\n"
    assert shown.rpartition("/")[2] in furnished("get", shown)
    assert "Name:" in furnished("describe", shown)
    assert "deleted" in furnished("delete", shown, "--wait=false")


def test_commands_that_need_a_kubelet_or_metrics_are_refused(furnished: Kubectl) -> None:
    assert "does not have a host assigned" in furnished("exec", "p", "--", "ls", succeeds=False)
    assert furnished("logs", "p") == ""
    assert "Metrics API not available" in furnished("top", "nodes", succeeds=False)


def test_an_unknown_kind_is_reported(furnished: Kubectl) -> None:
    missing = furnished("get", "nosuches", succeeds=False)
    assert missing == 'error: the server doesn\'t have a resource type "nosuches"\n'
    body = yaml.safe_dump({**widget("w"), "apiVersion": "example.org/v1"})
    unknown = furnished("apply", "-f", "-", stdin=body, succeeds=False)
    assert 'no matches for kind "Widget" in version "example.org/v1"' in unknown


def test_nodes_are_changed_and_described(furnished: Kubectl) -> None:
    assert furnished("cordon", "one") == "node/one cordoned\n"
    assert "one" in furnished("get", "nodes", "--field-selector=spec.unschedulable=true")
    furnished("taint", "nodes", "one", "a=b:NoSchedule")
    described = furnished("describe", "node", "one")
    assert "Unschedulable:      true" in described
    assert "a=b:NoSchedule" in described
    furnished("taint", "nodes", "one", "a-")
    assert furnished("uncordon", "one") == "node/one uncordoned\n"
    furnished("annotate", "node", "one", "note=x")
    furnished("label", "node", "one", "disk=ssd")
    path = "jsonpath={.metadata.labels.disk} {.metadata.annotations.note}"
    assert furnished("get", "node", "one", "-o", path) == "ssd x"


POD_OF_JOB = {
    "restartPolicy": "Never",
    "schedulerName": "nobody",
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "a", "operator": "Exists"}],
    "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}],
    "containers": [
        {
            "name": "c",
            "image": "x:1",
            "env": [{"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            "ports": [{"containerPort": 80}],
            "resources": {"requests": {"cpu": "100m"}},
            "readinessProbe": {"httpGet": {"port": 80}},
            "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        }
    ],
}


def test_a_job_is_made_of_a_cron_job(furnished: Kubectl) -> None:
    cron_job = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "nightly"},
        "spec": {
            "schedule": "0 3 * * *",
            "jobTemplate": {"spec": {"template": {"spec": POD_OF_JOB}}},
        },
    }
    furnished("create", "-f", "-", stdin=yaml.safe_dump(cron_job))
    furnished("create", "job", "now", "--from=cronjob/nightly")
    made = json.loads(furnished("get", "job", "now", "-o", "json"))
    template = json.loads(furnished("get", "cronjob", "nightly", "-o", "json"))
    template = template["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert made["spec"]["template"]["spec"] == template
    assert template["containers"][0]["readinessProbe"]["httpGet"]["path"] == "/"


def test_client_side_applied_objects_can_be_applied_by_the_server(furnished: Kubectl) -> None:
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "moved"},
        "data": {"a": "1", "b": "1"},
    }
    furnished("apply", "-f", "-", stdin=yaml.safe_dump(config))
    config["data"] = {"a": "2"}
    told = furnished("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump(config))
    assert told == "configmap/moved serverside-applied\n"
    moved = json.loads(furnished("get", "cm", "moved", "-o", "json", "--show-managed-fields"))
    assert moved["data"] == {"a": "2"}
    owners = {(who["manager"], who["operation"]) for who in moved["metadata"]["managedFields"]}
    assert ("kubectl-client-side-apply", "Update") not in owners
    assert ("kubectl", "Apply") in owners
    furnished("delete", "cm", "moved")
