"""Which addresses and node ports of Services are free; kept up to date as Services come and go."""

import bisect
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from simcluster.store.stored import Stored

Json = dict[str, Any]

_NODE_PORTS = range(30000, 32768)
_ADDRESSES_PER_BLOCK = 254
_ADDRESSES = range(256 * _ADDRESSES_PER_BLOCK)
_PREFIX = "10.96."


class FreeNumbers:
    """The numbers of a range that nobody has; iterating starts at the lowest, at once."""

    def __init__(self, numbers: range) -> None:
        self._numbers = numbers
        self._users: Counter[int] = Counter()
        self._first_never_passed = numbers.start
        self._holes: list[int] = []
        """Free numbers below that one, in order."""

    def take(self, number: int) -> None:
        """Somebody has it now, perhaps besides others; one out of the range is nobody's affair."""
        if number not in self._numbers:
            return
        self._users[number] += 1
        if self._users[number] == 1 and number < self._first_never_passed:
            del self._holes[bisect.bisect_left(self._holes, number)]

    def give_back(self, number: int) -> None:
        """One of those who have it has it no more."""
        if number not in self._numbers:
            return
        self._users[number] -= 1
        if not self._users[number]:
            del self._users[number]
            if number < self._first_never_passed:
                bisect.insort(self._holes, number)

    def __iter__(self) -> Iterator[int]:
        """Free numbers, lowest first; none may be taken or given back meanwhile."""
        while self._first_never_passed in self._users:
            self._first_never_passed += 1
        yield from self._holes
        above = range(self._first_never_passed, self._numbers.stop)
        yield from (number for number in above if number not in self._users)


class ClusterAddresses:
    """The cluster IPs of all Services."""

    def __init__(self) -> None:
        self._free = FreeNumbers(_ADDRESSES)

    def add(self, service: Stored) -> None:
        """A Service came."""
        self._free.take(_number_of(service.obj))

    def drop(self, service: Stored) -> None:
        """A Service went."""
        self._free.give_back(_number_of(service.obj))

    def lowest_free(self) -> str:
        """An address for another Service."""
        high, low = divmod(next(iter(self._free)), _ADDRESSES_PER_BLOCK)
        return f"{_PREFIX}{high}.{low + 1}"


def _number_of(service: Json) -> int:
    """The place of a Service's address in the order they are given in; -1 for any other address."""
    address = _spec(service).get("clusterIP")
    if not isinstance(address, str) or not address.startswith(_PREFIX):
        return -1
    high, _, low = address.removeprefix(_PREFIX).partition(".")
    if not (high.isdecimal() and low.isdecimal()) or not 1 <= int(low) <= _ADDRESSES_PER_BLOCK:
        return -1
    return int(high) * _ADDRESSES_PER_BLOCK + int(low) - 1


class NodePorts:
    """The node ports of all Services."""

    def __init__(self) -> None:
        self._free = FreeNumbers(_NODE_PORTS)

    def add(self, service: Stored) -> None:
        """A Service came."""
        for port in _node_ports(service.obj):
            self._free.take(port)

    def drop(self, service: Stored) -> None:
        """A Service went."""
        for port in _node_ports(service.obj):
            self._free.give_back(port)

    def free(self) -> Iterator[int]:
        """Ports for another Service, lowest first."""
        return iter(self._free)


def _node_ports(service: Json) -> Iterable[int]:
    for port in _spec(service).get("ports") or ():
        number = port.get("nodePort")
        if isinstance(number, int):
            yield number


def _spec(service: Json) -> Json:
    return service.get("spec") or {}
