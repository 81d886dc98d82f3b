"""One stream of messages for all open pages; each message is encoded once.

A page that reads too slowly loses messages and is told to fetch everything again. So is one that
comes back after more messages than are kept.
"""

from __future__ import annotations

import asyncio
from collections import deque
from itertools import dropwhile

import msgspec

MAX_MESSAGES = 256
"""Messages that are kept for pages that come back, and that may wait for one page."""
MAX_BYTES = 4 * 2**20

TOO_SLOW = "too slow"
TOO_OLD = "too old"
RELOADED = "reloaded"


class Message(msgspec.Struct, frozen=True):
    """A message as it is sent, with its number in the stream."""

    number: int
    data: bytes


class MessageQueue:
    """Messages in their order, with their size.

    Attributes:
        num_bytes: Size of all of them.
    """

    def __init__(self) -> None:
        self.messages: deque[Message] = deque()
        self.num_bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether there are more messages than are kept."""
        return len(self.messages) > MAX_MESSAGES or self.num_bytes > MAX_BYTES

    def append(self, message: Message) -> None:
        """Add a message at the end."""
        self.messages.append(message)
        self.num_bytes += len(message.data)

    def popleft(self) -> Message:
        """Take the first message."""
        message = self.messages.popleft()
        self.num_bytes -= len(message.data)
        return message

    def clear(self) -> None:
        """Drop all messages."""
        self.messages.clear()
        self.num_bytes = 0


class Subscriber:
    """The messages that wait for one page.

    Attributes:
        queue: The messages.
        missed: Whether messages were dropped, because the page reads too slowly.
        is_closed: Whether the connection is to end.
    """

    def __init__(self) -> None:
        self.queue = MessageQueue()
        self.missed = False
        self.is_closed = False
        self._arrived = asyncio.Event()

    def offer(self, message: Message) -> None:
        """Add a message; a full queue is emptied."""
        self.queue.append(message)
        if self.queue.is_full:
            self.queue.clear()
            self.missed = True
        self._arrived.set()

    def close(self) -> None:
        """End the connection after what waits for it."""
        self.is_closed = True
        self._arrived.set()

    async def take(self) -> bytes:
        """All waiting messages as they are sent; waits for the first one, for a loss or the end."""
        while not (self.queue.messages or self.missed or self.is_closed):
            self._arrived.clear()
            await self._arrived.wait()
        taken = [self.queue.popleft().data for _ in range(len(self.queue.messages))]
        return b"".join(taken)


class Hub:
    """Sends messages to all subscribers.

    Args:
        epoch: Differs for each start of the process; part of the ids of messages.

    Attributes:
        subscribers: The open pages.
        announced: The last version of the cluster that a message names.
    """

    def __init__(self, epoch: str) -> None:
        self.subscribers: set[Subscriber] = set()
        self.announced = 0
        self._epoch = epoch
        self._number = 0
        self._kept = MessageQueue()

    def publish(self, event: str, content: msgspec.Struct) -> None:
        """Encode a message once and offer it to all subscribers."""
        self._number += 1
        message = Message(self._number, self.encode(event, content))
        self._kept.append(message)
        while self._kept.is_full:
            self._kept.popleft()
        for subscriber in self.subscribers:
            subscriber.offer(message)

    def encode(self, event: str, content: msgspec.Struct, *, has_id: bool = True) -> bytes:
        """A message for one page; its id is that of the last message for all."""
        self.announced = max(self.announced, getattr(content, "version", 0))
        head = f"id: {self._epoch}-{self._number}\n" if has_id else ""
        return f"{head}event: {event}\ndata: ".encode() + msgspec.json.encode(content) + b"\n\n"

    def forget(self) -> None:
        """Drop the kept messages: pages that come back fetch everything again."""
        self._kept.clear()
        self._number += 1

    def subscribe(self) -> Subscriber:
        """A new subscriber, which gets what is published from now on."""
        subscriber = Subscriber()
        self.subscribers.add(subscriber)
        return subscriber

    def unsubscribe(self, subscriber: Subscriber) -> None:
        """End a subscription."""
        self.subscribers.discard(subscriber)

    def missed_since(self, last_id: str) -> bytes | None:
        """The messages after the one with this id; None if some of them are not kept."""
        epoch, _, text = last_id.rpartition("-")
        if epoch != self._epoch or not (text.isascii() and text.isdigit() and len(text) < 19):
            return None
        number = int(text)
        if number == self._number:
            return b""
        first = self._kept.messages[0].number if self._kept.messages else self._number + 1
        if number > self._number or first > number + 1:
            return None
        later = dropwhile(lambda each: each.number <= number, self._kept.messages)
        return b"".join(each.data for each in later)
