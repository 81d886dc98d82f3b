"""Errors in a configuration are published; secrets in it are not."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from stowage.api.config.changes import restart_errors
from stowage.api.config.errors import ConfigError
from stowage.api.config.loading import InvalidConfiguration, load_configuration
from stowage.api.config.types import ExtenderTLSConfig
from stowage.cli.config_file import parse_configuration

SECRET = "canary"
HEADER = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
}


def _with(**extender: Any) -> dict[str, Any]:
    url = "https://extender.example.com"
    return {**HEADER, "extenders": [{"urlPrefix": url, "filterVerb": "filter", **extender}]}


@pytest.mark.parametrize(
    "wrong",
    [
        _with(tlsConfig={"keyData": f"-----BEGIN KEY----- {SECRET}"}),
        _with(tlsConfig={"keyData": [SECRET]}),
        _with(tlsConfig=[{"keyData": SECRET}]),
        _with(urlPrefix=f"ftp://me:{SECRET}@extender.example.com"),
        _with(urlPrefix=[f"https://me:{SECRET}@extender.example.com"]),
        _with(urlPrefix=[f'https://me:"{SECRET}@extender.example.com']),
        {**HEADER, "extenders": {"tlsConfig": {"keyData": SECRET}}},
    ],
    ids=str,
)
def test_an_error_does_not_show_a_secret_in_the_same_object(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfiguration) as refused:
        load_configuration(wrong)
    assert refused.value.errors
    assert SECRET not in str([str(error) for error in refused.value.errors])


def test_a_restart_error_does_not_show_passwords() -> None:
    old, new = (
        load_configuration(_with(urlPrefix=f"https://me:{SECRET}{each}@extender.example.com"))
        for each in (1, 2)
    )
    errors = [str(error) for error in restart_errors(old, new)]
    assert "extenders: " in errors[0]
    assert SECRET not in str(errors)


def test_invalid_yaml_is_not_quoted() -> None:
    text = f"extenders:\n- tlsConfig:\n    keyData: {SECRET}: [\n"
    with pytest.raises(InvalidConfiguration, match="line 3, column") as refused:
        parse_configuration(text, "--config", "file.yaml")
    assert SECRET not in str(refused.value)


def test_other_values_are_shown_unchanged() -> None:
    assert ConfigError("a.b", {"c": ["d//e", 1]}, "").shown_value == '{"c":["d//e",1]}'


def test_the_repr_of_a_struct_does_not_show_the_private_key() -> None:
    tls = msgspec.convert({"keyData": "Y2FuYXJ5", "serverName": "s"}, ExtenderTLSConfig)
    assert tls.key_data == SECRET.encode()
    assert SECRET not in repr(tls)
