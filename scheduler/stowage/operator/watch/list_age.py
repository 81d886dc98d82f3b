"""Judges by its resource version whether a list is too old, or the API server has gone back.

Resource versions of one kind are integers that grow: comparable by contract since Kubernetes 1.35
(KEP-5504), and in fact since etcd 3. A list without a resource version is a quorum read, so it is
never older than what was seen before, except in two cases:

- A cache or a proxy answers with a list from the past. Pods that were bound since then are missing
  in it, so their room would look free: the list is ignored.
- etcd was restored from a backup. Objects are missing, others are as they once were, and all
  versions stay behind those that are known here: the list is right, and what is known is wrong.

The question that tells one from the other is a list "not older than" the version that was seen
(`ask_whether_reached`). A server that has not reached the version refuses it, as the contract says.

Versions of different kinds are not compared: API servers may keep kinds in stores of their own
(``--etcd-servers-overrides``), each with its own count. A new leader's list must be as new as its
Lease, so a list that seems too old twice leads to the same question about the version of the Lease:
a store that has not reached it counts on its own, or was restored.
"""

from __future__ import annotations

from stowage.operator.client.api_client import ApiClient
from stowage.operator.client.api_error import ApiError
from stowage.operator.client.resource_version import parse_resource_version

MAX_STALE_LISTS = 10
"""Stale lists in a row that are ignored; the next one is used, in case the server does not know the
question."""

STALE_LISTS_BEFORE_QUESTION = 2
"""Stale lists in a row after which the server is asked; a proxy's list is soon replaced."""


class StaleListError(Exception):
    """A list is older than an event or list that was seen before."""


class ListAge:
    """Compares lists of one kind with the versions that were seen before.

    Attributes:
        seen: The newest version of this kind that was seen; 0 if none was.
    """

    def __init__(self) -> None:
        self.seen = 0
        self._required = 0
        self._is_doubted = False
        self._num_stale = 0

    def note(self, resource_version: str) -> None:
        """Note a version that was seen; every list must have reached it."""
        self.seen = max(self.seen, parse_resource_version(resource_version))

    def require(self, version: int) -> None:
        """Use no list that is older than this version, which need not be of this kind."""
        self._required = max(self._required, version)

    def question(self) -> int:
        """The version that the server is to be asked for before the next list; 0 for none."""
        is_due = self._num_stale >= STALE_LISTS_BEFORE_QUESTION and not self._is_doubted
        return max(self.seen, self._required) if is_due else 0

    def refused(self, version: int) -> None:
        """The server has answered a `question`: it has not reached the version."""
        if version > self.seen:
            # Of another kind: its store has its own count.
            self._required = 0
        else:
            self.doubt()

    def doubt(self) -> None:
        """The server says itself that it has not reached what was seen."""
        self._is_doubted = True

    def has_gone_back(self, resource_version: str) -> bool:
        """Whether a list shows that the server was set back to an earlier state.

        Everything that was seen before is forgotten then.

        Raises:
            StaleListError: The list is too old, and must not be used.
        """
        version, newest = parse_resource_version(resource_version), max(self.seen, self._required)
        if version < newest and not self._is_doubted and self._num_stale < MAX_STALE_LISTS:
            self._num_stale += 1
            raise StaleListError(f"resource version {resource_version} after {newest}")
        is_earlier = version < self.seen
        self.seen = version
        self._required = self._num_stale = 0
        self._is_doubted = False
        return is_earlier


async def ask_whether_reached(client: ApiClient, path: str, version: str | int) -> None:
    """Ask the server with a short list whether it has reached a version of the kind at a path.

    Without a field selector, for which the server may read many objects to find one.

    Raises:
        ApiError: It has not (`is_from_the_future`), or refuses the list.
    """
    params = {
        "limit": "1",
        "resourceVersion": str(version),
        "resourceVersionMatch": "NotOlderThan",
    }
    await client.get(path, params, client.timeouts.list_timeout)


async def doubt_stale_lists(age: ListAge, client: ApiClient, path: str) -> None:
    """Ask whether the server has reached the version for which its last lists were too old.

    Raises:
        ApiError: The server refuses the list for another reason.
    """
    version = age.question()
    if not version:
        return
    try:
        await ask_whether_reached(client, path, version)
    except ApiError as error:
        if not is_from_the_future(error):
            raise
        age.refused(version)


def is_from_the_future(error: ApiError) -> bool:
    """Whether the server says that it has not reached the resource version of the request."""
    return "Too large resource version" in error.message
