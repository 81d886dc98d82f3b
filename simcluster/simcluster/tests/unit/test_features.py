"""``--feature-gates`` and ``--runtime-config`` of the API server."""

import pytest

from simcluster.features import alpha_kinds, read_features

GATE = ["GenericWorkload=true"]
VERSION = "scheduling.k8s.io/v1alpha2"


def test_no_alpha_kind_is_served_by_default() -> None:
    assert not alpha_kinds(read_features([], []))


@pytest.mark.parametrize(
    "runtime_config",
    [[VERSION], [f"{VERSION}=true"], ["api/alpha=true"], ["api/all=false", f"{VERSION}=1"]],
)
def test_the_gate_and_the_version_serve_the_kinds(runtime_config: list[str]) -> None:
    served = alpha_kinds(read_features(GATE, runtime_config))
    assert [resource.plural for resource in served] == ["workloads", "podgroups"]


def test_the_version_alone_serves_nothing() -> None:
    assert not alpha_kinds(read_features([], [f"{VERSION}=true"]))


@pytest.mark.parametrize(
    ("gates", "runtime_config", "message"),
    [
        (GATE, [], r"--runtime-config: .*expected scheduling.k8s.io/v1alpha2=true, which Generic"),
        (GATE, ["api/all=true", f"{VERSION}=false"], "expected scheduling.k8s.io/v1alpha2=true"),
        ([], ["batch/v2=true"], r'--runtime-config: "batch/v2=true" \(expected one of'),
        ([], [f"{VERSION}=maybe"], "with =true or =false"),
        (["GangScheduling=true"], [], "depends on features that are disabled"),
        (["Nonsense=true"], [], "unrecognized feature gate: Nonsense"),
    ],
)
def test_wrong_flags_are_refused(gates: list[str], runtime_config: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_features(gates, runtime_config)
