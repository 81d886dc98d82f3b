"""The ConfigMap of the configuration: its reference, and the read before the scheduler starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from simcluster import write_kubeconfig
from stowage.api.config.loading import InvalidConfiguration
from stowage.operator.client.api_client import ApiClient
from stowage.operator.client.api_error import ApiError
from stowage.operator.client.backoff import Backoff
from stowage.operator.configuration import config_map
from stowage.operator.configuration.config_map import (
    READ_ATTEMPTS,
    ConfigMapReference,
    parse_reference,
    read_config_map,
    text_of,
)

REFERENCE = ConfigMapReference("stowage-system", "stowage-config")


class _Server:
    """Answers each GET with the next answer; the last one repeats."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: bytes | Exception) -> None:
        self.paths: list[str] = []
        self._answers = list(answers)
        monkeypatch.setattr(ApiClient, "get", self._get)
        monkeypatch.setattr(config_map, "Backoff", lambda *_, **__: Backoff(lambda: 0.0, 0.0))

    async def _get(self, path: str, *_options: Any) -> bytes:
        self.paths.append(path)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def kubeconfig(tmp_path: Path) -> str:
    return str(write_kubeconfig(tmp_path / "kubeconfig", "http://api.example"))


def test_the_text_of_the_key_is_read_at_the_second_attempt(
    kubeconfig: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = b'{"metadata":{},"data":{"config.yaml":"kind: x"}}'
    server = _Server(monkeypatch, ApiError(503), found)
    assert read_config_map(REFERENCE, kubeconfig) == "kind: x"
    path = "/api/v1/namespaces/stowage-system/configmaps/stowage-config"
    assert server.paths == [path, path]


def test_a_server_that_does_not_answer_is_named_after_a_few_attempts(
    kubeconfig: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = _Server(monkeypatch, TimeoutError())
    text = "the API server at http://api.example does not answer: no answer in time"
    with pytest.raises(OSError, match=text):
        read_config_map(REFERENCE, kubeconfig)
    assert len(server.paths) == READ_ATTEMPTS


def test_a_refusal_names_the_option(kubeconfig: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _Server(monkeypatch, ApiError(403, "Forbidden", "no right"))
    with pytest.raises(InvalidConfiguration) as invalid:
        read_config_map(REFERENCE, kubeconfig)
    assert "--configmap" in str(invalid.value)
    assert "a ConfigMap that can be read; 403 Forbidden: no right" in str(invalid.value)


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("a/b", ConfigMapReference("a", "b", "config.yaml")),
        ("a/b:c.yaml", ConfigMapReference("a", "b", "c.yaml")),
    ],
)
def test_a_reference_has_namespace_name_and_optional_key(
    text: str, reference: ConfigMapReference
) -> None:
    assert parse_reference(text) == reference


@pytest.mark.parametrize("text", ["", "b", "/b", "a/", "a/b:", "a/b/c", ":c"])
def test_an_invalid_reference_is_refused(text: str) -> None:
    with pytest.raises(InvalidConfiguration, match="NAMESPACE/NAME"):
        parse_reference(text)


def test_the_error_for_a_missing_key_lists_the_existing_keys() -> None:
    with pytest.raises(InvalidConfiguration, match=r'data: \["other"\] \(expected the key'):
        text_of({"data": {"other": ""}}, REFERENCE)
