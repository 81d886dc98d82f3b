"""The manifests as a cluster gets them, and the scheduler started the way they say."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from scheduler.cli import composition
from scheduler.cli.main import app
from scheduler.cluster.resources import BY_KIND
from scheduler.operator import RunOptions
from tests.integration.api_client import ApiClient

Json = dict[str, Any]

ROOT = Path(__file__).parents[2]
MANIFESTS = ROOT / "manifests"
KUBECTL = Path(sys.executable).parent / "kubectl"

needs_kubectl = pytest.mark.skipif(not KUBECTL.exists(), reason="kubectl is not installed")


def kustomized(folder: Path = MANIFESTS) -> list[Json]:
    """The objects that ``kubectl apply -k`` applies."""
    command = [str(KUBECTL), "kustomize", str(folder)]
    built = subprocess.run(command, check=True, capture_output=True, text=True)
    return list(yaml.safe_load_all(built.stdout))


def the(objects: Sequence[Json], kind: str, name: str = "") -> Json:
    """The one object of a kind, or of a kind and a name."""
    (found,) = [
        obj
        for obj in objects
        if obj["kind"] == kind and (not name or obj["metadata"]["name"] == name)
    ]
    return found


async def apply(api: ApiClient, objects: Sequence[Json]) -> None:
    """Create what is not there yet."""
    for obj in objects:
        reply = await api.post(_collection_path(obj), obj)
        assert reply.status in {201, 409}, reply.text


def _collection_path(obj: Json) -> str:
    resource = BY_KIND[obj["apiVersion"], obj["kind"]]
    root = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
    scope = f"/namespaces/{obj['metadata']['namespace']}" if resource.namespaced else ""
    return f"{root}{scope}/{resource.plural}"


def pod_spec(objects: Sequence[Json]) -> Json:
    """The pod spec of the Deployment."""
    spec: Json = the(objects, "Deployment")["spec"]["template"]["spec"]
    return spec


def container(objects: Sequence[Json]) -> Json:
    """The container that schedules."""
    (found,) = pod_spec(objects)["containers"]
    spec: Json = found
    return spec


def mount(objects: Sequence[Json], folder: Path) -> None:
    """Fill ``folder/<volume>`` with what the pod's volumes hold once its init container has run."""
    (init,) = pod_spec(objects)["initContainers"]
    for volume in pod_spec(objects)["volumes"]:
        (folder / volume["name"]).mkdir()
        if "configMap" in volume:
            data = the(objects, "ConfigMap", volume["configMap"]["name"])["data"]
            for name, text in data.items():
                (folder / volume["name"] / name).write_text(text)
    command = [*init["command"], *arguments(init, objects, folder)]
    subprocess.run(command, check=True, capture_output=True)


def arguments(container: Json, objects: Sequence[Json], folder: Path) -> list[str]:
    """A container's arguments, with variables put in and mounted paths moved into ``folder``."""
    variables = {
        f"$({entry['name']})": _field(objects, entry["valueFrom"]["fieldRef"]["fieldPath"])
        for entry in container.get("env") or ()
    }
    mounted = {
        entry["mountPath"]: str(folder / entry["name"]) for entry in container["volumeMounts"]
    }
    return [_put_in(_put_in(argument, variables), mounted) for argument in container["args"]]


def _put_in(text: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(name, value)
    return text


def _field(objects: Sequence[Json], path: str) -> str:
    deployment = the(objects, "Deployment")
    template: Json = deployment["spec"]["template"]
    fields = {
        "metadata.namespace": deployment["metadata"]["namespace"],
        "spec.serviceAccountName": template["spec"]["serviceAccountName"],
    }
    return str(fields[path])


def options_of(command_line: Sequence[str]) -> RunOptions:
    """What the command line ``stowage ...`` would run."""
    collected: list[RunOptions] = []

    def collect(options: RunOptions) -> int:
        collected.append(options)
        return 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(composition, "run_until_told", collect)
        patch.setattr(composition, "set_up_logging", lambda *_flags: None)
        result = CliRunner().invoke(app, list(command_line), env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output or repr(result.exception)
    (options,) = collected
    return options


def deployed_options(objects: Sequence[Json], folder: Path, kubeconfig: Path) -> RunOptions:
    """What the Deployment's container runs, against another cluster than its own.

    It serves on a free port of the loopback and leaves signals and garbage collector alone.
    """
    mount(objects, folder)
    here = [f"--kubeconfig={kubeconfig}"]
    return options_of([*arguments(container(objects), objects, folder), *here])
