"""The objects of the manifests, and a scheduler with the flags of their Deployment."""

import asyncio
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from msgspec.structs import replace
from typer.testing import CliRunner

from simcluster.kinds.catalog import BY_KIND
from simcluster.ports import reserved_port
from simcluster.tests.support.api_client import ApiClient
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S
from stowage.cli import composition
from stowage.cli.main import app
from stowage.operator.app import run
from stowage.operator.run_options import RunOptions

Json = dict[str, Any]

ROOT = Path(__file__).parents[3]
MANIFESTS = ROOT / "manifests"
KUBECTL = Path(sys.executable).parent / "kubectl"

needs_kubectl = pytest.mark.skipif(not KUBECTL.exists(), reason="kubectl is not installed")


class CannotStartError(Exception):
    """The command line failed before the scheduler ran."""


def kustomized(folder: Path = MANIFESTS) -> list[Json]:
    """The objects that ``kubectl apply -k`` applies."""
    command = [str(KUBECTL), "kustomize", str(folder)]
    built = subprocess.run(command, check=True, capture_output=True, text=True)
    return list(yaml.safe_load_all(built.stdout))


def installed(folder: Path = MANIFESTS) -> list[Json]:
    """What a cluster has after the first installation: the objects and the configuration."""
    own = folder / "configuration"
    return [*kustomized(folder), *kustomized(own if own.exists() else MANIFESTS / "configuration")]


def with_component(overlay: str, component: str, folder: Path) -> list[Json]:
    """The objects of an overlay that uses a component besides, and of its configuration."""
    copy = folder / "manifests"
    shutil.copytree(MANIFESTS, copy)
    kustomization = copy / "overlays" / overlay / "kustomization.yaml"
    content = yaml.safe_load(kustomization.read_text())
    content["components"] = [f"../../components/{component}"]
    kustomization.write_text(yaml.safe_dump(content))
    return installed(kustomization.parent)


def the(objects: Sequence[Json], kind: str, name: str = "") -> Json:
    """The only object with this kind, and with this name if one is given."""
    (found,) = [
        obj
        for obj in objects
        if obj["kind"] == kind and (not name or obj["metadata"]["name"] == name)
    ]
    return found


async def apply(api: ApiClient, objects: Sequence[Json]) -> None:
    """Create the objects that do not exist."""
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
    """The scheduler's container."""
    (found,) = pod_spec(objects)["containers"]
    spec: Json = found
    return spec


def arguments(objects: Sequence[Json]) -> list[str]:
    """The container's arguments, with its environment variables expanded."""
    values = {
        f"$({entry['name']})": _field(objects, entry["valueFrom"]["fieldRef"]["fieldPath"])
        for entry in container(objects)["env"]
    }
    return [_expand(argument, values) for argument in container(objects)["args"]]


def _expand(text: str, values: Mapping[str, str]) -> str:
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
    """The options with which the command line ``stowage ...`` runs the scheduler."""
    collected: list[RunOptions] = []

    def collect(options: RunOptions) -> int:
        collected.append(options)
        return 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(composition, "run_scheduler", collect)
        patch.setattr(composition, "set_up_logging", lambda *_flags: None)
        result = CliRunner().invoke(app, list(command_line), env={"COLUMNS": "200"})
    if result.exit_code:
        raise CannotStartError(result.output or repr(result.exception))
    (options,) = collected
    return options


async def deployed_options(objects: Sequence[Json], kubeconfig: Path) -> RunOptions:
    """The options of the Deployment's container, with another kubeconfig.

    Raises:
        CannotStartError: the configuration is invalid or cannot be read.
    """
    command_line = [*arguments(objects), f"--kubeconfig={kubeconfig}"]
    # The command runs an event loop of its own.
    return await asyncio.to_thread(options_of, command_line)


@asynccontextmanager
async def running(options: RunOptions) -> AsyncIterator[str]:
    """Run the scheduler in this process; yields its URL once it answers. It must exit with 0."""
    with reserved_port() as port:
        async with _serving(options, port) as url:
            yield url


@asynccontextmanager
async def _serving(options: RunOptions, port: int) -> AsyncIterator[str]:
    assert options.serving is not None
    stop = asyncio.Event()
    serving = replace(options.serving, bind_address="127.0.0.1", port=port)
    here = replace(options, serving=serving, stop=stop, owns_process=False)
    process = asyncio.create_task(run(here))
    url = f"https://127.0.0.1:{serving.port}"
    try:
        await asyncio.wait_for(_answering(url), WAIT_TIMEOUT_S)
        yield url
    finally:
        stop.set()
        assert await asyncio.wait_for(process, WAIT_TIMEOUT_S) == 0


async def _answering(url: str) -> None:
    async with serving_client(url, "") as client:
        while True:
            with suppress(aiohttp.ClientError):
                async with client.get("/livez"):
                    return
            await asyncio.sleep(0.02)


@asynccontextmanager
async def serving_client(url: str, token: str) -> AsyncIterator[aiohttp.ClientSession]:
    """A client of the scheduler's endpoints with a token; certificates are not checked."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    connector = aiohttp.TCPConnector(ssl=False)
    async with aiohttp.ClientSession(url, headers=headers, connector=connector) as session:
        yield session
