"""The example plugins, installed with pip, in a running scheduler."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from simcluster.tests.support.api_client import NODES, PODS, ApiClient
from simcluster.tests.support.api_servers import ApiServerUnderTest
from simcluster.tests.support.timeouts import WAIT_TIMEOUT_S, wait_until

EXAMPLE = Path(__file__).parents[3] / "examples" / "plugins"
STOWAGE = [sys.executable, "-m", "stowage.cli"]
GANG = {"example.com/gang": "crew"}
ENABLED: tuple[Mapping[str, object], ...] = (
    {"name": "PreferLabel", "weight": 50},
    {"name": "PreferredTerms"},
    {"name": "PodsPerNode"},
    {"name": "Gang"},
)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment variables of a process that has the example installed; built offline."""
    folder = tmp_path_factory.mktemp("example")
    source, target = folder / "source", folder / "target"
    shutil.copytree(EXAMPLE, source, ignore=shutil.ignore_patterns("__pycache__"))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    offline = ["--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, *offline, f"--target={target}", str(source)], check=True)
    return {**os.environ, "PYTHONPATH": str(target), "COLUMNS": "160"}


def _configuration(folder: Path, enabled: Sequence[Mapping[str, object]], **args: Any) -> Path:
    """Write a configuration whose only profile enables these plugins with these arguments."""
    profile = {
        "schedulerName": "stowage",
        "plugins": {"multiPoint": {"enabled": list(enabled)}},
        "pluginConfig": [{"name": name, "args": given} for name, given in args.items()],
    }
    file = folder / "config.yaml"
    file.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "profiles": [profile],
            }
        )
    )
    return file


def _check(file: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*STOWAGE, "config", "check", str(file)],
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )


def test_plugins_of_an_installed_package_can_be_configured(
    installed: dict[str, str], tmp_path: Path
) -> None:
    file = _configuration(tmp_path, ENABLED, PodsPerNode={"maxPods": 2}, Gang={"size": 3})
    answer = _check(file, installed)
    assert (answer.returncode, answer.stderr) == (0, "")


def test_the_arguments_of_plugins_are_checked(installed: dict[str, str], tmp_path: Path) -> None:
    file = _configuration(
        tmp_path,
        ENABLED,
        PreferLabel={"valeu": "disk"},
        PodsPerNode={"maxPods": 0},
        Gang={"size": "many"},
    )
    answer = _check(file, installed)
    assert answer.returncode == 1
    lines = answer.stderr.splitlines()
    for words in (
        ("profiles[0].pluginConfig[0].args.valeu", '"disk"', "did you mean value?"),
        ("profiles[0].pluginConfig[1].args.maxPods", "0", "at least 1"),
        ("profiles[0].pluginConfig[2].args.size", '"many"', "a whole number"),
    ):
        assert any(all(word in line for word in words) for line in lines), answer.stderr


def test_plugins_of_a_package_that_is_not_installed_are_refused(tmp_path: Path) -> None:
    file = _configuration(tmp_path, [{"name": "PreferLabel"}])
    answer = _check(file, {**os.environ, "COLUMNS": "160"})
    assert answer.returncode == 1
    assert "the name of a known plugin" in answer.stderr


def test_a_broken_plugin_package_stops_only_the_profiles_that_use_it(
    installed: dict[str, str], tmp_path: Path
) -> None:
    target = tmp_path / "target"
    shutil.copytree(installed["PYTHONPATH"], target)
    (target / "stowage_example" / "gang.py").write_text("import no_such_module\n")
    environment = {**installed, "PYTHONPATH": str(target)}
    unharmed = _check(_configuration(tmp_path, [{"name": "PreferLabel"}]), environment)
    refused = _check(_configuration(tmp_path, [{"name": "Gang"}]), environment)
    assert (unharmed.returncode, refused.returncode) == (0, 1)
    for answer in (unharmed, refused):
        text = " ".join(answer.stderr.split())
        assert "plugin Gang not loaded: entry point Gang = stowage_example.gang:Gang" in text
        assert "stowage-example 0.1.0" in text
        assert "No module named 'no_such_module'" in text
    assert "profiles[0].plugins.multiPoint.enabled[0].name" in refused.stderr


class _Scheduled:
    """Creates pods and reads their nodes."""

    def __init__(self, api: ApiClient, log: Path) -> None:
        self._api = api
        self._log = log

    async def create(self, *names: str, labels: Mapping[str, str] | None = None) -> None:
        """Create pods, one after the other."""
        container = {"name": "c", "image": "registry.k8s.io/pause:3.10"}
        for name in names:
            metadata = {"name": name, "namespace": "default", "labels": dict(labels or {})}
            spec = {"schedulerName": "stowage", "containers": [container]}
            await self._api.post(PODS, {"metadata": metadata, "spec": spec})

    async def node_of(self, name: str) -> str:
        """The node of a pod; empty if it has none."""
        return str((await self._api.get(f"{PODS}/{name}")).body["spec"].get("nodeName", ""))

    async def nodes_of(self, *names: str) -> list[str]:
        """Wait until all pods are bound; returns their nodes."""

        async def all_bound() -> bool:
            return all([await self.node_of(name) for name in names])

        await self._wait_until(all_bound)
        return [await self.node_of(name) for name in names]

    async def _wait_until(self, condition: Callable[[], Awaitable[bool]]) -> None:
        try:
            await wait_until(condition)
        except TimeoutError:
            pytest.fail(self._log.read_text())


@asynccontextmanager
async def _running(
    server: ApiServerUnderTest, api: ApiClient, file: Path, environment: Mapping[str, str]
) -> AsyncIterator[_Scheduled]:
    """`stowage run` with this configuration."""
    log = file.with_name("scheduler.log")
    flags = [f"--config={file}", f"--kubeconfig={server.kubeconfig}"]
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *STOWAGE,
            "run",
            *flags,
            "--leader-elect=false",
            "--secure-port=0",
            env=environment,
            stdout=output,
            stderr=output,
        )
    try:
        yield _Scheduled(api, log)
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), WAIT_TIMEOUT_S) == 0, log.read_text()


async def test_plugins_of_an_installed_package_decide_in_a_running_scheduler(
    installed: dict[str, str], api_server: ApiServerUnderTest, api: ApiClient, tmp_path: Path
) -> None:
    for name, labels in (("plain", {}), ("fast", {"disk": "ssd"}), ("simple", {})):
        capacity = {"cpu": "8", "memory": "16Gi", "pods": "110"}
        node = {"metadata": {"name": name, "labels": labels}, "status": {"capacity": capacity}}
        await api.post(NODES, node)
    ledger = tmp_path / "ledger"
    file = _configuration(
        tmp_path,
        ENABLED,
        PodsPerNode={"maxPods": 2},
        Gang={"size": 2, "ledger": str(ledger)},
    )
    async with _running(api_server, api, file, installed) as pods:
        # The score: the node with the label, until the filter finds it full.
        await pods.create("p1", "p2")
        assert (await pods.nodes_of("p1", "p2"))[:2] == ["fast", "fast"]
        await pods.create("p3")
        assert (await pods.nodes_of("p3"))[0] in ("plain", "simple")
        # Permit: the first of the gang waits, although pods that came later are bound.
        await pods.create("g1", labels=GANG)
        await pods.create("p4")
        await pods.nodes_of("p4")
        assert await pods.node_of("g1") == ""
        assert not ledger.exists()
        # The second releases it; PreBind has written both down before they were bound.
        await pods.create("g2", labels=GANG)
        nodes = await pods.nodes_of("g1", "g2")
    lines = [f"default/g1 on {nodes[0]}", f"default/g2 on {nodes[1]}"]
    assert sorted(ledger.read_text().splitlines()) == lines
