"""IP addresses and networks, as ``net/netip`` of Go parses them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from stowage.cel.errors import CelRuntimeError

_BITS = re.compile(r"0|[1-9][0-9]{0,2}")
_LINK_LOCAL_MULTICAST_V4 = IPv4Network("224.0.0.0/24")
_BROADCAST = IPv4Address("255.255.255.255")


@dataclass(frozen=True, slots=True)
class IP:
    """An address without a zone; IPv4 addresses mapped to IPv6 are refused."""

    address: IPv4Address | IPv6Address

    @property
    def size(self) -> int:
        """Bytes of the address."""
        return self.address.max_prefixlen // 8

    @property
    def is_link_local_multicast(self) -> bool:
        """Whether it is in 224.0.0.0/24 or has the scope 2 of IPv6."""
        if isinstance(self.address, IPv4Address):
            return self.address in _LINK_LOCAL_MULTICAST_V4
        return int(self.address) >> 112 & 0xFF0F == 0xFF02

    @property
    def is_global_unicast(self) -> bool:
        """Whether it is none of unspecified, loopback, multicast, link-local, broadcast."""
        address = self.address
        return not (
            address.is_unspecified
            or address.is_loopback
            or address.is_multicast
            or address.is_link_local
            or address == _BROADCAST
        )

    def __str__(self) -> str:
        return str(self.address)


@dataclass(frozen=True, slots=True)
class CIDR:
    """An address with the length of a prefix; bits after the prefix are kept."""

    ip: IP
    bits: int

    @property
    def size(self) -> int:
        """Bytes of the prefix."""
        return -(-self.bits // 8)

    @property
    def network(self) -> IPv4Network | IPv6Network:
        """The network, without the bits after the prefix."""
        pair = (self.ip.address, self.bits)
        if isinstance(self.ip.address, IPv4Address):
            return IPv4Network(pair, strict=False)
        return IPv6Network(pair, strict=False)

    def contains_ip(self, other: IP) -> bool:
        """Whether the address is in the network."""
        return other.address in self.network

    def contains_cidr(self, other: CIDR) -> bool:
        """Whether the other network is a part of this one."""
        return other.ip.address in self.network and self.bits <= other.bits

    def masked(self) -> CIDR:
        """The same network with no bits after the prefix."""
        return CIDR(IP(self.network.network_address), self.bits)

    def __str__(self) -> str:
        return f"{self.ip}/{self.bits}"


def parse_ip(text: str) -> IP:
    """Parse an address.

    Raises:
        CelRuntimeError: the text is not an address that Kubernetes accepts.
    """
    if "%" in text:
        raise CelRuntimeError(f'IP address "{text}" with zone value is not allowed')
    try:
        address = ip_address(text)
    except ValueError:
        raise CelRuntimeError(
            f'IP Address "{text}" parse error during conversion from string'
        ) from None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        raise CelRuntimeError(f'IPv4-mapped IPv6 address "{text}" is not allowed')
    return IP(address)


def parse_cidr(text: str) -> CIDR:
    """Parse an address with the length of a prefix.

    Raises:
        CelRuntimeError: the text is not such an address.
    """
    address, slash, bits = text.rpartition("/")
    error = CelRuntimeError("network address parse error during conversion from string")
    if not slash or not _BITS.fullmatch(bits):
        raise error
    ip = parse_ip(address)
    if int(bits) > ip.address.max_prefixlen:
        raise error
    return CIDR(ip, int(bits))
