"""Which proxy a request takes, as Go's ``http.ProxyFromEnvironment`` decides."""

from __future__ import annotations

import pytest

from stowage.operator.client.proxies import UnsupportedProxyError, proxy_of

PROXY = "http://proxy.example:3128"
SERVER = "https://api.example.com:6443"


@pytest.mark.parametrize(
    ("environment", "url", "proxy"),
    [
        ({}, SERVER, None),
        ({"HTTPS_PROXY": PROXY}, SERVER, PROXY),
        ({"https_proxy": PROXY}, SERVER, PROXY),
        ({"HTTPS_PROXY": PROXY, "https_proxy": "http://other"}, SERVER, PROXY),
        ({"HTTPS_PROXY": "", "https_proxy": PROXY}, SERVER, PROXY),
        ({"HTTP_PROXY": PROXY}, SERVER, None),
        ({"HTTP_PROXY": PROXY}, "http://extender.example/filter", PROXY),
        ({"ALL_PROXY": PROXY, "all_proxy": PROXY}, SERVER, None),
        ({"HTTPS_PROXY": "proxy.example:3128"}, SERVER, PROXY),
        ({"HTTPS_PROXY": "proxy.example"}, SERVER, "http://proxy.example"),
        ({"HTTPS_PROXY": "https://user:secret@p:1"}, SERVER, "https://user:secret@p:1"),
        ({"HTTPS_PROXY": "http://["}, SERVER, None),
        ({"HTTPS_PROXY": "http://p:port"}, SERVER, None),
        ({"HTTPS_PROXY": PROXY}, "https://localhost:6443", None),
        ({"HTTPS_PROXY": PROXY}, "https://127.0.0.1:6443", None),
        ({"HTTPS_PROXY": PROXY}, "https://127.8.8.8:6443", None),
        ({"HTTPS_PROXY": PROXY}, "https://[::1]:6443", None),
        ({"HTTPS_PROXY": PROXY}, "https://[::ffff:127.0.0.1]:6443", None),
        ({"HTTPS_PROXY": PROXY, "no_proxy": "example.com"}, SERVER, None),
        ({"HTTPS_PROXY": PROXY, "NO_PROXY": "other", "no_proxy": "example.com"}, SERVER, PROXY),
        ({"HTTPS_PROXY": PROXY}, "https://api.example.com:port", PROXY),
    ],
)
def test_the_proxy_is_that_of_the_environment(
    environment: dict[str, str], url: str, proxy: str | None
) -> None:
    assert proxy_of(url, environment) == proxy


@pytest.mark.parametrize(
    ("no_proxy", "host", "is_direct"),
    [
        ("*", "api.example.com", True),
        ("a,*", "api.example.com", True),
        ("example.com", "example.com", True),
        ("example.com", "api.example.com", True),
        ("Example.COM", "API.example.com", True),
        ("example.com", "myexample.com", False),
        (".example.com", "api.example.com", True),
        (".example.com", "example.com", False),
        ("*.example.com", "api.example.com", True),
        ("*.example.com", "example.com", False),
        (" a.b , api.example.com ,", "api.example.com", True),
        ("example.com:6443", "api.example.com", True),
        ("example.com:443", "api.example.com", False),
        ("10.0.0.0/8", "10.1.2.3", True),
        ("10.0.0.1/8", "10.1.2.3", True),
        ("10.0.0.0/8", "11.1.2.3", False),
        ("10.0.0.0/8", "api.example.com", False),
        ("10.1.2.3", "10.1.2.3", True),
        ("10.1.2.3:6443", "10.1.2.3", True),
        ("10.1.2.3:443", "10.1.2.3", False),
        ("fd00::/8", "[fd00::1]", True),
        ("fd00::1", "[fd00::1]", True),
        ("[fd00::1]:6443", "[fd00::1]", True),
        ("[fd00::1]:443", "[fd00::1]", False),
        ("10.0.0.0/99,not/a/network,:6443", "10.1.2.3", False),
    ],
)
def test_what_no_proxy_covers_is_reached_directly(
    no_proxy: str, host: str, is_direct: bool
) -> None:
    environment = {"HTTPS_PROXY": PROXY, "NO_PROXY": no_proxy}
    assert (proxy_of(f"https://{host}:6443", environment) is None) == is_direct


@pytest.mark.parametrize(
    ("url", "no_proxy"), [("https://a.b", "a.b:443"), ("http://a.b", "a.b:80")]
)
def test_the_port_of_no_proxy_is_compared_with_the_usual_one(url: str, no_proxy: str) -> None:
    environment = {"HTTPS_PROXY": PROXY, "HTTP_PROXY": PROXY, "NO_PROXY": no_proxy}
    assert proxy_of(url, environment) is None


def test_a_proxy_that_cannot_be_used_is_named_without_its_password() -> None:
    with pytest.raises(UnsupportedProxyError, match=r"^the proxy is 'socks5://p:1080', expected"):
        proxy_of(SERVER, {"HTTPS_PROXY": "socks5://user:secret@p:1080"})
    assert proxy_of("https://localhost", {"HTTPS_PROXY": "socks5://p:1080"}) is None
