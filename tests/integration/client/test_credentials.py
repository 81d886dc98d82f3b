"""Credentials of a kubeconfig are used, and read again when they change."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from simcluster.tests.support.api_servers import ApiServerUnderTest
from stowage.operator.client.api_client import ApiClient
from stowage.operator.client.api_error import ApiError
from stowage.operator.client.connection import Connection, connect

NAMESPACE = "/api/v1/namespaces/default"


@pytest.fixture
def needs_token(api_server: ApiServerUnderTest) -> ApiServerUnderTest:
    if not api_server.token:
        pytest.skip("this server authorizes every client")
    return api_server


def _write(server: ApiServerUnderTest, path: Path, user: dict[str, Any]) -> str:
    """Write a kubeconfig for the server whose only user has these credentials."""
    config = yaml.safe_load(server.kubeconfig.read_text())
    config["users"][0]["user"] = user
    path.write_text(yaml.safe_dump(config))
    return str(path)


async def _can_read(connection: Connection) -> bool:
    try:
        await ApiClient(connection).get(NAMESPACE)
    except ApiError as refusal:
        if refusal.status != 401:
            raise
        return False
    return True


async def test_the_token_of_a_kubeconfig_is_used(api_server: ApiServerUnderTest) -> None:
    connection = await connect(str(api_server.kubeconfig))
    try:
        assert await _can_read(connection)
    finally:
        await connection.close()


async def test_a_rotated_token_is_read_after_a_401(
    needs_token: ApiServerUnderTest, tmp_path: Path
) -> None:
    path = tmp_path / "rotating"
    connection = await connect(_write(needs_token, path, {"token": "out-of-date"}))
    try:
        assert not await _can_read(connection)
        _write(needs_token, path, {"token": needs_token.token})
        assert await _can_read(connection)
    finally:
        await connection.close()


async def test_a_token_file_is_reread(needs_token: ApiServerUnderTest, tmp_path: Path) -> None:
    token_file = tmp_path / "token"
    token_file.write_text("out-of-date")
    path = _write(needs_token, tmp_path / "with-file", {"tokenFile": str(token_file)})
    connection = await connect(path)
    try:
        token_file.write_text(needs_token.token)
        await connection.renew()
        assert connection.session.headers["Authorization"] == f"Bearer {needs_token.token}"
    finally:
        await connection.close()


async def test_the_token_of_an_exec_plugin_is_used(
    needs_token: ApiServerUnderTest, tmp_path: Path
) -> None:
    version = "client.authentication.k8s.io/v1"
    status = {"token": needs_token.token}
    credential = {"apiVersion": version, "kind": "ExecCredential", "status": status}
    plugin = {
        "apiVersion": version,
        "command": sys.executable,
        "args": ["-c", f"print({json.dumps(credential)!r})"],
        "interactiveMode": "Never",
    }
    connection = await connect(_write(needs_token, tmp_path / "with-plugin", {"exec": plugin}))
    try:
        assert await _can_read(connection)
    finally:
        await connection.close()
