"""Free addresses and node ports of Services; indexes that follow the Services of the store."""

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator

from simcluster.store.stored import Stored
from simcluster.values import Json

_NODE_PORTS = range(30000, 32768)
_ADDRESSES_PER_BLOCK = 254
_ADDRESSES = range(256 * _ADDRESSES_PER_BLOCK)
_PREFIX = "10.96."


class FreeNumbers:
    """The free numbers of a range.

    Numbers that were given back wait in a heap; those above ``_unused_from`` were never taken in
    order. A number in the heap may have been taken again, so users are counted.
    """

    def __init__(self, numbers: range) -> None:
        self._numbers = numbers
        self._users: Counter[int] = Counter()
        self._given_back: list[int] = []
        self._unused_from = numbers.start

    def take(self, number: int) -> None:
        """Count a user of a number; numbers out of the range are ignored."""
        if number in self._numbers:
            self._users[number] += 1

    def give_back(self, number: int) -> None:
        """Count one user less."""
        if number not in self._numbers:
            return
        self._users[number] -= 1
        if not self._users[number]:
            del self._users[number]
            if number < self._unused_from:
                heapq.heappush(self._given_back, number)

    def __iter__(self) -> Iterator[int]:
        """Free numbers, lowest first; none may be taken or given back meanwhile."""
        while self._given_back and self._given_back[0] in self._users:
            heapq.heappop(self._given_back)
        while self._unused_from in self._users:
            self._unused_from += 1
        heap, last = list(self._given_back), -1
        while heap:
            number = heapq.heappop(heap)
            if number != last and number not in self._users:
                yield number
            last = number
        above = range(self._unused_from, self._numbers.stop)
        yield from (number for number in above if number not in self._users)


class ClusterAddresses:
    """The cluster IPs of all Services."""

    def __init__(self) -> None:
        self._free = FreeNumbers(_ADDRESSES)

    def add(self, service: Stored) -> None:
        """Take the address of a new Service."""
        self._free.take(_number_of(service.obj))

    def drop(self, service: Stored) -> None:
        """Give back the address of a Service that is gone."""
        self._free.give_back(_number_of(service.obj))

    def lowest_free(self) -> str:
        """An address for another Service."""
        high, low = divmod(next(iter(self._free)), _ADDRESSES_PER_BLOCK)
        return f"{_PREFIX}{high}.{low + 1}"


def _number_of(service: Json) -> int:
    """The number of a Service's address in the order of allocation; -1 for any other address."""
    high, _, low = str(_spec(service).get("clusterIP")).removeprefix(_PREFIX).partition(".")
    if not (high.isdecimal() and low.isdecimal()) or not 1 <= int(low) <= _ADDRESSES_PER_BLOCK:
        return -1
    return int(high) * _ADDRESSES_PER_BLOCK + int(low) - 1


class NodePorts:
    """The node ports of all Services."""

    def __init__(self) -> None:
        self._free = FreeNumbers(_NODE_PORTS)

    def add(self, service: Stored) -> None:
        """Take the ports of a new Service."""
        for port in _node_ports(service.obj):
            self._free.take(port)

    def drop(self, service: Stored) -> None:
        """Give back the ports of a Service that is gone."""
        for port in _node_ports(service.obj):
            self._free.give_back(port)

    def free(self) -> Iterator[int]:
        """Ports for another Service, lowest first."""
        return iter(self._free)


def _node_ports(service: Json) -> Iterable[int]:
    numbers = (port.get("nodePort") for port in _spec(service).get("ports") or ())
    return (number for number in numbers if isinstance(number, int))


def _spec(service: Json) -> Json:
    return service.get("spec") or {}
