"""kubectl against an API server without controllers."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from simcluster.tests.contract.custom_objects import WIDGET, widget
from simcluster.tests.support.api_client import node, pod
from simcluster.tests.support.api_servers import ApiServerUnderTest
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S

WAIT = f"--timeout={WAIT_TIMEOUT_S:g}s"
KUBECTL = Path(sys.executable).parent / "kubectl"
pytestmark = pytest.mark.skipif(not KUBECTL.exists(), reason="kubectl is not installed")

Kubectl = Callable[..., str]


@pytest.fixture(scope="module")
def kubectl(secure_server: ApiServerUnderTest, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    """Runs kubectl and returns its output; it must succeed unless ``succeeds`` is false."""
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
            timeout=WAIT_TIMEOUT_S,
        )
        text = done.stdout.decode()
        assert (done.returncode == 0) is succeeds, text
        return text

    return run


@pytest.fixture(scope="module")
def prepared(kubectl: Kubectl) -> Kubectl:
    """Kubectl for a server with two nodes, a pod and the CustomResourceDefinition of widgets."""
    objects = [node("one"), node("two", "z2"), pod("p"), WIDGET]
    kubectl("create", "-f", "-", stdin=yaml.safe_dump_all(objects))
    kubectl("wait", "--for=condition=Established", f"crd/{WIDGET['metadata']['name']}", WAIT)
    return kubectl


def test_kinds_versions_and_server_are_reported(prepared: Kubectl) -> None:
    kinds = prepared("api-resources", "-o", "wide")
    for line in ("pods", "deployments", "priorityclasses", "widgets"):
        assert f"\n{line} " in kinds
    assert "create,delete,deletecollection,get,list,patch,update,watch" in kinds
    versions = prepared("api-versions").split()
    assert {"v1", "apps/v1", "policy/v1", "example.com/v1", "example.com/v1beta1"} <= set(versions)
    version = json.loads(prepared("version", "-o", "json"))["serverVersion"]
    assert (version["major"], version["minor"]) == ("1", "36")
    assert "is running at" in prepared("cluster-info")


def test_explain_shows_fields(prepared: Kubectl) -> None:
    containers = prepared("explain", "pod.spec.containers")
    assert "FIELD: containers <[]Container>" in containers
    assert "image\t<string>" in containers
    assert "-required-" in containers
    deep = prepared("explain", "deployment", "--recursive")
    assert "GROUP:      apps" in deep
    assert "topologySpreadConstraints\t<[]TopologySpreadConstraint>" in deep
    assert "size\t<integer> -required-" in prepared("explain", "widget.spec")
    missing = prepared("explain", "pod.spec.nosuch", succeeds=False)
    assert 'field "nosuch" does not exist' in missing


def test_get_supports_every_output_format(prepared: Kubectl) -> None:
    assert prepared("get", "nodes", "-o", "name").split() == ["node/one", "node/two"]
    assert prepared("get", "nodes", "-o", "name", "--chunk-size=1").split() == [
        "node/one",
        "node/two",
    ]
    path = "custom-columns=NAME:.metadata.name,CPU:.status.capacity.cpu"
    assert prepared("get", "nodes", "-o", path).split() == ["NAME", "CPU", "one", "4", "two", "4"]
    ordered = prepared("get", "nodes", "--sort-by={.metadata.name}", "-o", "name")
    assert ordered.split() == ["node/one", "node/two"]
    labelled = prepared("get", "nodes", "-l", "topology.kubernetes.io/zone in (z2)").split()
    assert ("one" in labelled, "two" in labelled) == (False, True)
    pods = prepared("get", "pods", "-A", "--field-selector=spec.nodeName=", "--show-labels")
    assert "app=p" in pods
    wide = prepared("get", "pods", "-o", "wide").splitlines()[0]
    assert wide.split("  ")[0] == "NAME"
    assert "NOMINATED NODE" in wide
    refused = prepared("get", "pods", "--field-selector=spec.image=x", succeeds=False)
    assert "field label not supported: spec.image" in refused


def test_custom_resources_are_created_read_changed_and_deleted(prepared: Kubectl) -> None:
    text = yaml.safe_dump(widget("w"))
    assert prepared("apply", "-f", "-", stdin=text) == "widget.example.com/w created\n"
    assert prepared("apply", "-f", "-", stdin=text) == "widget.example.com/w unchanged\n"
    changed = yaml.safe_dump(widget("w", color="blue"))
    assert "configured" in prepared("apply", "-f", "-", stdin=changed)
    shown = prepared("get", "wd").splitlines()
    assert shown[0].split() == ["NAME", "SIZE", "READY", "AGE"]
    assert shown[1].split()[:2] == ["w", "3"]
    assert prepared("scale", "wd/w", "--replicas=3") == "widget.example.com/w scaled\n"
    prepared(
        "patch", "wd", "w", "--subresource=status", "--type=merge", "-p",
        '{"status":{"conditions":[{"type":"Ready","status":"True"}]}}',
    )  # fmt: skip
    assert "met" in prepared("wait", "--for=condition=Ready", "wd/w", WAIT)
    refused = prepared(
        "patch", "wd", "w", "--type=merge", "-p", '{"spec":{"size":99}}', succeeds=False
    )
    assert "spec.size in body should be less than or equal to 10" in refused
    unknown = yaml.safe_dump(widget("w", nosuch=1))
    strict = prepared("apply", "-f", "-", stdin=unknown, succeeds=False)
    assert 'unknown field "spec.nosuch"' in strict
    assert "Color:" in prepared("describe", "wd", "w")
    assert "deleted" in prepared("delete", "wd", "w")


def test_auth_whoami_and_can_i(prepared: Kubectl) -> None:
    assert "system:masters" in prepared("auth", "whoami")
    assert prepared("auth", "can-i", "create", "pods").strip() == "yes"
    assert prepared("auth", "can-i", "get", "pods", "--as=jane", succeeds=False).strip() == "no"
    everything = prepared("auth", "can-i", "--list")
    assert "*.*" in everything
    prepared("create", "serviceaccount", "robot")
    prepared("create", "role", "reader", "--verb=get,list", "--resource=pods")
    prepared("create", "rolebinding", "reader", "--role=reader", "--serviceaccount=default:robot")
    robot = "--as=system:serviceaccount:default:robot"
    assert prepared("auth", "can-i", "list", "pods", robot).strip() == "yes"
    listed = prepared("auth", "can-i", "--list", robot)
    assert "pods" in listed
    assert "[get list]" in listed
    token = prepared("create", "token", "robot").strip()
    assert token.count(".") == 2
    refused = prepared("get", "nodes", robot, succeeds=False)
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
    prepared: Kubectl, arguments: tuple[str, ...], shown: str
) -> None:
    assert prepared("create", *arguments) == f"{shown} created\n"
    assert shown.rpartition("/")[2] in prepared("get", shown)
    assert "Name:" in prepared("describe", shown)
    assert "deleted" in prepared("delete", shown, "--wait=false")


def test_commands_that_need_a_kubelet_or_metrics_are_refused(prepared: Kubectl) -> None:
    assert "does not have a host assigned" in prepared("exec", "p", "--", "ls", succeeds=False)
    assert prepared("logs", "p") == ""
    assert "Metrics API not available" in prepared("top", "nodes", succeeds=False)


def test_an_unknown_kind_is_an_error(prepared: Kubectl) -> None:
    missing = prepared("get", "nosuches", succeeds=False)
    assert missing == 'error: the server doesn\'t have a resource type "nosuches"\n'
    body = yaml.safe_dump({**widget("w"), "apiVersion": "example.org/v1"})
    unknown = prepared("apply", "-f", "-", stdin=body, succeeds=False)
    assert 'no matches for kind "Widget" in version "example.org/v1"' in unknown


def test_nodes_can_be_changed_and_described(prepared: Kubectl) -> None:
    assert prepared("cordon", "one") == "node/one cordoned\n"
    assert "one" in prepared("get", "nodes", "--field-selector=spec.unschedulable=true")
    prepared("taint", "nodes", "one", "a=b:NoSchedule")
    described = prepared("describe", "node", "one")
    assert "Unschedulable:      true" in described
    assert "a=b:NoSchedule" in described
    prepared("taint", "nodes", "one", "a-")
    assert prepared("uncordon", "one") == "node/one uncordoned\n"
    prepared("annotate", "node", "one", "note=x")
    prepared("label", "node", "one", "disk=ssd")
    path = "jsonpath={.metadata.labels.disk} {.metadata.annotations.note}"
    assert prepared("get", "node", "one", "-o", path) == "ssd x"


def test_a_pod_is_made_to_debug_a_node(prepared: Kubectl) -> None:
    told = prepared("debug", "node/one", "--image=busybox", "--profile=sysadmin")
    name = told.split()[3]
    path = "jsonpath={.spec.nodeName} {.spec.hostPID} {.spec.volumes[0].hostPath.path}"
    try:
        assert prepared("get", "pod", name, "-o", path) == "one true /"
    finally:
        prepared("delete", "pod", name, "--grace-period=0", "--force")


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


def test_a_job_is_created_from_a_cron_job(prepared: Kubectl) -> None:
    cron_job = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "nightly"},
        "spec": {
            "schedule": "0 3 * * *",
            "jobTemplate": {"spec": {"template": {"spec": POD_OF_JOB}}},
        },
    }
    prepared("create", "-f", "-", stdin=yaml.safe_dump(cron_job))
    prepared("create", "job", "now", "--from=cronjob/nightly")
    made = json.loads(prepared("get", "job", "now", "-o", "json"))
    template = json.loads(prepared("get", "cronjob", "nightly", "-o", "json"))
    template = template["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert made["spec"]["template"]["spec"] == template
    assert template["containers"][0]["readinessProbe"]["httpGet"]["path"] == "/"


def test_client_side_applied_objects_can_be_applied_server_side(prepared: Kubectl) -> None:
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "moved"},
        "data": {"a": "1", "b": "1"},
    }
    prepared("apply", "-f", "-", stdin=yaml.safe_dump(config))
    config["data"] = {"a": "2"}
    output = prepared("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump(config))
    assert output == "configmap/moved serverside-applied\n"
    moved = json.loads(prepared("get", "cm", "moved", "-o", "json", "--show-managed-fields"))
    assert moved["data"] == {"a": "2"}
    owners = {
        (entry["manager"], entry["operation"]) for entry in moved["metadata"]["managedFields"]
    }
    assert ("kubectl-client-side-apply", "Update") not in owners
    assert ("kubectl", "Apply") in owners
    prepared("delete", "cm", "moved")
