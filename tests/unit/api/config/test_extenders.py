"""The extenders that are called for a pod, and validation of their configuration."""

from __future__ import annotations

from typing import Any

import pytest

from stowage.api.config.extenders import BindingExtender, Extenders, is_interested
from stowage.api.config.loading import (
    Extender,
    InvalidConfiguration,
    load_configuration,
    to_builtins,
    without_private_keys,
)
from stowage.api.config.types import ExtenderManagedResource
from stowage.api.objects.pod import Container, PodSpec, ResourceRequirements

GPU = "example.com/gpu"
MANAGING = Extender(
    url_prefix="http://x",
    filter_verb="filter",
    bind_verb="bind",
    managed_resources=(ExtenderManagedResource(GPU, ignored_by_scheduler=True),),
)


def _spec(*, init: bool = False, **resources: Any) -> PodSpec:
    containers = (
        Container(name="a"),
        Container(name="b", resources=ResourceRequirements(**resources)),
    )
    return PodSpec(init_containers=containers) if init else PodSpec(containers=containers)


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        (_spec(), False),
        (_spec(requests={"cpu": "1"}), False),
        (_spec(requests={GPU: "1"}), True),
        (_spec(limits={GPU: "1"}), True),
        (_spec(init=True, limits={GPU: "1"}), True),
    ],
)
def test_an_extender_with_managed_resources_is_called_for_pods_that_request_them(
    spec: PodSpec, want: bool
) -> None:
    assert is_interested(MANAGING, spec) is want
    assert (Extenders([MANAGING]).binder_of(spec) is not None) is want


def test_an_extender_without_managed_resources_is_called_for_all_pods() -> None:
    assert is_interested(Extender(url_prefix="http://x"), _spec())


def test_ignorable_extenders_are_called_last() -> None:
    hint = Extender(url_prefix="http://hint", prioritize_verb="rate", ignorable=True)
    must = Extender(url_prefix="http://must", filter_verb="filter")
    binder = Extender(url_prefix="http://bind", bind_verb="bind", ignorable=True)
    extenders = Extenders([hint, binder, must])
    assert extenders.to_consult(_spec()) == (2, 0)
    assert extenders.binder_of(_spec()) == BindingExtender(1, is_ignorable=True)
    assert extenders.any_filters((2, 0))
    assert not extenders.any_filters((0,))


def test_resources_ignored_by_the_scheduler_are_listed() -> None:
    assert Extenders([MANAGING]).ignored_resources() == (GPU,)


def _configured(*extenders: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "extenders": [{"urlPrefix": "http://x", **extender} for extender in extenders],
    }


@pytest.mark.parametrize(
    ("extenders", "want"),
    [
        (
            [{"prioritizeVerb": "rate"}],
            ["extenders[0].weight: 0 (expected greater than 0, as prioritizeVerb is set)"],
        ),
        (
            [{"bindVerb": "bind"}, {}, {"bindVerb": "too"}],
            [
                (
                    'extenders[2].bindVerb: "too" '
                    "(expected none: only one extender can bind, and extenders[0] does)"
                )
            ],
        ),
        (
            [{"managedResources": [{"name": "cpu"}]}],
            [
                (
                    'extenders[0].managedResources[0].name: "cpu" '
                    "(expected an extended resource such as example.com/foo)"
                )
            ],
        ),
        (
            [{"managedResources": [{"name": GPU}]}, {"managedResources": [{"name": GPU}]}],
            [
                (
                    f'extenders[1].managedResources[0].name: "{GPU}" '
                    "(expected a resource of its own, extenders[0].managedResources[0].name is the"
                    " same)"
                )
            ],
        ),
        (
            [{"httpTimeout": "-1s"}],
            ['extenders[0].httpTimeout: "-1s" (expected 0s or longer)'],
        ),
        (
            [{"tlsConfig": {"insecure": True, "caFile": "ca.pem"}}],
            ["extenders[0].tlsConfig.insecure: true (expected false, as a CA is given)"],
        ),
        (
            [{"tlsConfig": {"certFile": "cert.pem"}}],
            ['extenders[0].tlsConfig.keyFile: "" (expected a key, as a certificate is given)'],
        ),
        (
            [{"tlsConfig": {"keyFile": "key.pem"}}],
            ['extenders[0].tlsConfig.certFile: "" (expected a certificate, as a key is given)'],
        ),
    ],
)
def test_an_error_names_field_value_and_expectation(
    extenders: list[dict[str, Any]], want: list[str]
) -> None:
    with pytest.raises(InvalidConfiguration) as refusal:
        load_configuration(_configured(*extenders))
    assert [str(error) for error in refusal.value.errors] == want


@pytest.mark.parametrize(
    "url", ["", "extender", "ftp://extender", "http://", "http://x:port", "http://x?y=1"]
)
def test_an_unusable_url_is_an_error(url: str) -> None:
    with pytest.raises(InvalidConfiguration, match=r"extenders\[0\]\.urlPrefix"):
        load_configuration(_configured({"urlPrefix": url}))


def test_a_configuration_of_kube_scheduler_is_accepted_unchanged() -> None:
    written = {
        "urlPrefix": "https://extender.example.com:8443/scheduler/",
        "filterVerb": "filter",
        "preemptVerb": "preempt",
        "prioritizeVerb": "prioritize",
        "weight": 5,
        "bindVerb": "bind",
        "enableHTTPS": True,
        "tlsConfig": {"caData": "Y2E=", "certData": "Y2VydA==", "keyData": "a2V5"},
        "httpTimeout": "30s",
        "nodeCacheCapable": True,
        "managedResources": [{"name": GPU, "ignoredByScheduler": True}],
        "ignorable": True,
    }
    configuration = load_configuration(_configured(written))
    assert to_builtins(configuration)["extenders"] == (
        {**written, "managedResources": ({"name": GPU, "ignoredByScheduler": True},)},
    )
    shown = to_builtins(without_private_keys(configuration))["extenders"][0]["tlsConfig"]
    assert shown == {"caData": "Y2E=", "certData": "Y2VydA=="}


def test_a_password_in_a_url_is_not_shown() -> None:
    written = {"urlPrefix": "https://user:canary@host:8888/x", "filterVerb": "filter"}
    configuration = load_configuration(_configured(written))
    assert configuration.extenders[0].url_prefix == written["urlPrefix"]
    shown = to_builtins(without_private_keys(configuration))["extenders"][0]
    assert shown["urlPrefix"] == "https://host:8888/x"
    with pytest.raises(InvalidConfiguration) as refusal:
        load_configuration(_configured({**written, "urlPrefix": "ftp://user:canary@host"}))
    assert "canary" not in str(refusal.value)
