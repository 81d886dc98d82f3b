"""The proxy to a server, picked from the environment as Go's ``http.ProxyFromEnvironment`` does.

kubectl and kube-scheduler ask it for the API server, unless the kubeconfig has a ``proxy-url``, and
for extenders. aiohttp's own ``trust_env`` reads other variables, and passwords from ``.netrc``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit

from stowage.api.config.errors import without_credentials

_PORTS = {"http": "80", "https": "443"}
_HOST_AND_PORT = re.compile(r"(?:\[(.+)\]|([^:\[\]]+)):([^:\[\]]*)")


class UnsupportedProxyError(OSError):
    """A proxy that is neither of HTTP nor of HTTPS."""


def proxy_of(url: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """The proxy for requests to a server; None if they go there directly.

    The variables are ``HTTPS_PROXY`` or ``HTTP_PROXY``, after the scheme of the server, and
    ``NO_PROXY``; lower case is read after upper case. No proxy is used to this machine's loopback
    addresses. A value that is no URL counts as none.

    Args:
        url: Of the server.
        environment: Variables.

    Raises:
        UnsupportedProxyError: The proxy is of another scheme than http and https.
    """
    server = urlsplit(url)
    proxy = _proxy_url(_value(f"{server.scheme}_proxy", environment))
    if not proxy or is_direct(server.hostname or "", _port(url), _value("no_proxy", environment)):
        return None
    return checked(proxy)


def checked(proxy: str) -> str:
    """The proxy, if it can be used.

    Raises:
        UnsupportedProxyError: It is of another scheme than http and https.
    """
    if urlsplit(proxy).scheme not in _PORTS:
        shown = without_credentials(proxy)
        raise UnsupportedProxyError(f"the proxy is {shown!r}, expected http:// or https://")
    return proxy


def is_direct(host: str, port: str, no_proxy: str) -> bool:
    """Whether requests to a host take no proxy.

    Args:
        host: In lower case, an IPv6 address without brackets.
        port: Its port.
        no_proxy: Comma-separated: hosts, which stand for their subdomains too, ``.domain`` for
            subdomains only, addresses, each with or without a port, networks, or ``*``.
    """
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    entries = (entry.strip().lower() for entry in no_proxy.split(","))
    return any(_covers(entry, host, port, address) for entry in entries if entry)


def _covers(entry: str, host: str, port: str, address: IPv4Address | IPv6Address | None) -> bool:
    if entry == "*":
        return True
    if "/" in entry:
        return address is not None and _is_in(entry, address)
    split = _HOST_AND_PORT.fullmatch(entry)
    name, only = (split[1] or split[2], split[3]) if split else (entry, "")
    if only and only != port:
        return False
    if (named := _address(name)) is not None:
        return named == address
    name = name.removeprefix("*") if name.startswith("*.") else name
    return host.endswith(name if name.startswith(".") else f".{name}") or host == name


def _is_in(network: str, address: IPv4Address | IPv6Address) -> bool:
    try:
        return address in ip_network(network, strict=False)
    except ValueError:
        return False


def _port(url: str) -> str:
    server = urlsplit(url)
    try:
        return str(server.port or _PORTS.get(server.scheme, ""))
    except ValueError:
        return ""


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(host)
    except ValueError:
        return None
    return (isinstance(address, IPv6Address) and address.ipv4_mapped) or address


def _proxy_url(value: str) -> str:
    """A value as a URL: ``HOST:PORT`` is a proxy of HTTP."""
    text = value if "://" in value else f"http://{value}"
    try:
        url = urlsplit(text)
        return text if url.hostname and url.port != 0 else ""
    except ValueError:
        return ""


def _value(name: str, environment: Mapping[str, str]) -> str:
    return environment.get(name.upper()) or environment.get(name) or ""
