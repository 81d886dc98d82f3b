"""What keeps a connection from being opened is named together with the file that was read."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from stowage.operator.client.connection import Connection, connect, kubernetes_config

NO_KUBECONFIG = "there is no kubeconfig (--kubeconfig, $KUBECONFIG or ~/.kube/config), and "


@pytest.fixture
def default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The default kubeconfig, which does not exist yet."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    path = tmp_path / "default"
    monkeypatch.setattr(kubernetes_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(path))
    return path


def _broken(path: Path) -> Path:
    path.write_text("kind: Config\n")
    return path


@pytest.fixture
def broken_default(default: Path) -> Path:
    return _broken(default)


async def _problem(kubeconfig: str | None = None) -> str:
    with pytest.raises(kubernetes_config.ConfigException) as caught:
        await connect(kubeconfig)
    return str(caught.value)


@pytest.mark.usefixtures("default")
async def test_without_a_kubeconfig_and_outside_of_a_cluster_all_sources_are_named() -> None:
    assert await _problem() == f"{NO_KUBECONFIG}this is not a pod of a cluster"


@pytest.mark.usefixtures("default")
async def test_in_a_pod_without_a_service_account_its_problem_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.delenv("KUBERNETES_SERVICE_PORT", raising=False)
    text = f"{NO_KUBECONFIG}the service account of this pod cannot be used: Service host/port"
    assert (await _problem()).startswith(text)


async def test_a_default_kubeconfig_that_cannot_be_used_is_named(broken_default: Path) -> None:
    assert (await _problem()).startswith(f"the kubeconfig {broken_default} cannot be used: ")


@pytest.mark.usefixtures("broken_default")
async def test_the_kubeconfig_of_the_option_is_named_and_not_the_default(tmp_path: Path) -> None:
    own = _broken(tmp_path / "own")
    assert (await _problem(str(own))).startswith(f"the kubeconfig {own} cannot be used: ")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "it is empty (expected a mapping with clusters, contexts, users and current-context)"),
        ("# nothing\n", "it is empty (expected a mapping with"),
        ("[]", "it is of type list (expected a mapping with"),
        ("current-context: a\ncontexts: 5\n", "contexts is of type int (expected a list)"),
    ],
)
@pytest.mark.usefixtures("default")
async def test_a_file_that_is_no_kubeconfig_is_named_with_what_was_expected(
    text: str, problem: str, tmp_path: Path
) -> None:
    path = tmp_path / "own"
    path.write_text(text)
    assert (await _problem(str(path))).startswith(
        f"the kubeconfig {path} cannot be used: {problem}"
    )


@pytest.mark.usefixtures("default")
async def test_of_several_kubeconfigs_the_empty_one_is_named(tmp_path: Path) -> None:
    whole, empty = tmp_path / "whole", tmp_path / "empty"
    whole.write_text(KUBECONFIG)
    empty.write_text("")
    paths = f"{whole}:{empty}"
    assert f"{paths} cannot be used: {empty}: it is empty" in await _problem(paths)


KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: first
contexts:
- {name: first, context: {cluster: first, user: me}}
- {name: second, context: {cluster: second, user: me}}
clusters:
- {name: first, cluster: {server: "http://first.example"}}
- {name: second, cluster: {server: "http://second.example"}}
users:
- {name: me, user: {token: secret}}
"""


@pytest.mark.parametrize(
    ("context", "server"),
    [(None, "http://first.example"), ("second", "http://second.example")],
)
async def test_the_context_selects_the_cluster(
    context: str | None, server: str, tmp_path: Path
) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(KUBECONFIG)
    connection = await connect(str(path), context=context)
    assert connection.server == server
    await connection.close()


async def test_credentials_are_renewed_again_after_a_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The old credentials may still be valid."""
    outcomes: list[Exception | None] = [OSError("the plugin failed"), None]
    renewed = asyncio.Event()

    async def renew(_self: Connection) -> None:
        outcome = outcomes.pop(0)
        if outcome is not None:
            raise outcome
        renewed.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(Connection, "renew", renew)
    monkeypatch.setattr("stowage.operator.client.connection.CREDENTIALS_CHECK_S", 0.0)
    with capture_logs() as logs:
        running = asyncio.create_task(Connection(None).keep_fresh())
        await asyncio.wait(
            [running, asyncio.create_task(renewed.wait())], return_when="FIRST_COMPLETED"
        )
        running.cancel()
    line = {"event": "credentials not renewed", "log_level": "warning"}
    assert logs == [line | {"error": "the plugin failed"}]
    assert renewed.is_set()


@pytest.mark.usefixtures("default")
@pytest.mark.parametrize("has_kubeconfig", [True, False], ids=["with", "without"])
async def test_the_address_of_the_option_replaces_that_of_the_kubeconfig(
    has_kubeconfig: bool, tmp_path: Path
) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(KUBECONFIG)
    connection = await connect(str(path) if has_kubeconfig else None, master="http://other.example")
    await connection.renew()
    await connection.reload(connection.generation)
    assert connection.server == "http://other.example"
    await connection.close()


async def test_a_server_that_is_no_address_is_named(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(KUBECONFIG.replace("http://first.example", "first.example:6443"))
    problem = "server is 'first.example:6443', expected https://HOST:PORT"
    assert await _problem(str(path)) == f"the kubeconfig {path} cannot be used: {problem}"


async def test_one_of_several_default_kubeconfigs_is_enough_to_be_named(
    broken_default: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = f"{tmp_path / 'missing'}:{broken_default}"
    monkeypatch.setattr(kubernetes_config, "KUBE_CONFIG_DEFAULT_LOCATION", paths)
    assert (await _problem()).startswith(f"the kubeconfig {paths} cannot be used: ")


async def test_only_the_first_of_several_refused_requests_reloads_the_credentials(
    tmp_path: Path,
) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(KUBECONFIG)
    connection = await connect(str(path))
    path.write_text(KUBECONFIG.replace("secret", "renewed"))
    await asyncio.gather(connection.reload(0), connection.reload(0))
    assert connection.generation == 1
    assert connection.session.headers["Authorization"] == "Bearer renewed"
    await connection.close()
