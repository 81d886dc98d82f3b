"""Quantities, versions, addresses, networks and URLs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stowage.cel.errors import CelRuntimeError
from stowage.cel.functions import costs
from stowage.cel.signatures.functions import Overload, overload
from stowage.cel.values.containers import CelMap
from stowage.cel.values.network import CIDR, IP, parse_cidr, parse_ip
from stowage.cel.values.quantity import Quantity, parse_quantity, quantity_of
from stowage.cel.values.semver import Semver, normalized, parse_semver
from stowage.cel.values.url import parse_request_uri, parse_url


def _valid(parse: Callable[..., Any]) -> Callable[..., bool]:
    def is_valid(*args: Any) -> bool:
        try:
            parse(*args)
        except CelRuntimeError:
            return False
        return True

    return is_valid


def _as_integer(value: Quantity) -> int:
    found = value.as_integer()
    if found is None:
        raise CelRuntimeError("cannot convert value to integer")
    return found


def _semver(text: str, normalize: bool = False) -> Semver:
    return parse_semver(normalized(text) if normalize else text)


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


def _order(left: Semver, right: Semver) -> int:
    return (left.key > right.key) - (left.key < right.key)


def _contains_ip(network: CIDR, address: IP | str) -> bool:
    return network.contains_ip(parse_ip(address) if isinstance(address, str) else address)


def _contains_cidr(network: CIDR, other: CIDR | str) -> bool:
    return network.contains_cidr(parse_cidr(other) if isinstance(other, str) else other)


def _is_canonical(text: str) -> bool:
    return str(parse_ip(text)) == text


def _query(url: Any) -> CelMap:
    return CelMap(url.query())


FUNCTIONS: list[Overload] = [
    overload("quantity(string) -> Quantity", lambda text: parse_quantity(text).fresh()),
    overload("isQuantity(string) -> bool", _valid(parse_quantity)),
    overload("sign(Quantity) -> int", lambda value: value.sign),
    overload("Quantity.isGreaterThan(Quantity) -> bool", lambda a, b: a.compare(b) == 1),
    overload("Quantity.isLessThan(Quantity) -> bool", lambda a, b: a.compare(b) == -1),
    overload("Quantity.compareTo(Quantity) -> int", Quantity.compare),
    overload("Quantity.asApproximateFloat() -> double", Quantity.as_float),
    overload("Quantity.asInteger() -> int", _as_integer),
    overload("Quantity.isInteger() -> bool", lambda value: value.as_integer() is not None),
    overload("Quantity.add(Quantity) -> Quantity", Quantity.plus),
    overload("Quantity.add(int) -> Quantity", lambda a, b: a.plus(quantity_of(b))),
    overload("Quantity.sub(Quantity) -> Quantity", Quantity.minus),
    overload("Quantity.sub(int) -> Quantity", lambda a, b: a.minus(quantity_of(b))),
    overload("semver(string) -> Semver", parse_semver),
    overload("semver(string, bool) -> Semver", _semver),
    overload("isSemver(string) -> bool", _valid(parse_semver)),
    overload("isSemver(string, bool) -> bool", _valid(_semver)),
    overload("Semver.isGreaterThan(Semver) -> bool", lambda a, b: _order(a, b) == 1),
    overload("Semver.isLessThan(Semver) -> bool", lambda a, b: _order(a, b) == -1),
    overload("Semver.compareTo(Semver) -> int", _order),
    overload("Semver.major() -> int", lambda value: _signed(value.major)),
    overload("Semver.minor() -> int", lambda value: _signed(value.minor)),
    overload("Semver.patch() -> int", lambda value: _signed(value.patch)),
    overload("ip(string) -> IP", parse_ip, costs.traversal),
    overload("isIP(string) -> bool", _valid(parse_ip)),
    overload("ip.isCanonical(string) -> bool", _is_canonical),
    overload("IP.family() -> int", lambda value: value.address.version),
    overload("IP.isUnspecified() -> bool", lambda value: value.address.is_unspecified),
    overload("IP.isLoopback() -> bool", lambda value: value.address.is_loopback),
    overload("IP.isLinkLocalMulticast() -> bool", lambda value: value.is_link_local_multicast),
    overload("IP.isLinkLocalUnicast() -> bool", lambda value: value.address.is_link_local),
    overload("IP.isGlobalUnicast() -> bool", lambda value: value.is_global_unicast),
    overload("cidr(string) -> CIDR", parse_cidr),
    overload("isCIDR(string) -> bool", _valid(parse_cidr)),
    overload("CIDR.containsIP(string) -> bool", _contains_ip, costs.contains_ip_text),
    overload("CIDR.containsIP(IP) -> bool", _contains_ip),
    overload("CIDR.containsCIDR(string) -> bool", _contains_cidr, costs.contains_cidr_text),
    overload("CIDR.containsCIDR(CIDR) -> bool", _contains_cidr),
    overload("CIDR.ip() -> IP", lambda value: value.ip),
    overload("CIDR.prefixLength() -> int", lambda value: value.bits),
    overload("CIDR.masked() -> CIDR", CIDR.masked),
    overload("url(string) -> URL", parse_url),
    overload("isURL(string) -> bool", _valid(parse_request_uri)),
    overload("URL.getScheme() -> string", lambda url: url.scheme),
    overload("URL.getHost() -> string", lambda url: url.host),
    overload("URL.getHostname() -> string", lambda url: url.hostname),
    overload("URL.getPort() -> string", lambda url: url.port),
    overload("URL.getEscapedPath() -> string", lambda url: url.escaped_path),
    overload("URL.getQuery() -> map(string, list(string))", _query),
]
