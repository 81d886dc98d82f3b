"""TLS options with Go's names."""

from __future__ import annotations

import ssl

import pytest

from stowage.operator.serving.tls_options import (
    CIPHER_SUITES,
    REMOVED_SUITES,
    TLS_13_SUITES,
    TlsOptions,
)

NUM_SUITES_OF_TLS_12 = 24
"""The number of suites that ``kube-scheduler --help`` v1.36 lists besides those of TLS 1.3."""


def ciphers(options: TlsOptions) -> set[str]:
    """The suites of TLS 1.2 in the context."""
    listed = options.context().get_ciphers()
    return {each["name"] for each in listed if each["protocol"] != "TLSv1.3"}


@pytest.mark.parametrize("suite", sorted(CIPHER_SUITES))
def test_every_suite_that_openssl_has_can_be_chosen_alone(suite: str) -> None:
    assert ciphers(TlsOptions(cipher_suites=(suite,))) == {CIPHER_SUITES[suite]}


def test_all_suites_of_go_are_known() -> None:
    assert len(CIPHER_SUITES.keys() | REMOVED_SUITES) == NUM_SUITES_OF_TLS_12


def test_removed_suites_are_left_out_and_named() -> None:
    chosen = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"
    options = TlsOptions(cipher_suites=(chosen, "TLS_RSA_WITH_RC4_128_SHA"))
    assert ciphers(options) == {CIPHER_SUITES[chosen]}
    (text,) = options.without_effect()
    assert text.startswith("--tls-cipher-suites=TLS_RSA_WITH_RC4_128_SHA: ")


@pytest.mark.parametrize(
    "suites", [tuple(TLS_13_SUITES), ("TLS_RSA_WITH_RC4_128_SHA",)], ids=["1.3", "removed"]
)
def test_without_a_suite_of_tls_1_2_only_tls_1_3_is_served(suites: tuple[str, ...]) -> None:
    context = TlsOptions(cipher_suites=suites).context()
    assert context.minimum_version is ssl.TLSVersion.TLSv1_3


@pytest.mark.parametrize("version", ["VersionTLS10", "VersionTLS11"])
def test_versions_before_tls_1_2_are_raised_to_it(version: str) -> None:
    options = TlsOptions(min_version=version)
    assert options.context().minimum_version is ssl.TLSVersion.TLSv1_2
    assert len(options.without_effect()) == 1


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ValueError, match="not TLS_MADE_UP"):
        TlsOptions(cipher_suites=("TLS_MADE_UP",))
    with pytest.raises(ValueError, match="not VersionSSL30"):
        TlsOptions(min_version="VersionSSL30")
