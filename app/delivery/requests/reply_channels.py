"""Channels on which clients receive replies to their requests."""

import re
from collections.abc import Sequence
from typing import Final

from holdfast.delivery.basics.channels import REPLIES
from holdfast.delivery.basics.feature_records import record_of, with_record
from holdfast.delivery.queues.receivers import Receiver

# The first digit of the server's serials; clients have 1 to 8, by their language.
SERVER: Final = 9

_COUNT: Final = 1_000_000
_MASK: Final = 0xFFFFFFFF

_SERIAL: Final = re.compile(r"/([1-8][0-9]{6})")
_HIGHEST: Final = 9_999_999


class Serials:
    """Counts from a given or random number. 0 follows 999999.

    As in xMsg, the counter has 32 bits: when it overflows, the numbers jump once.
    """

    def __init__(self, language: int, counter: int = 0) -> None:
        self._language = language
        self.counter = counter

    def next(self) -> int:
        """Return the next number."""
        number = self.counter & _MASK
        self.counter += 1
        return self._language * _COUNT + number % _COUNT


class ReplyChannel:
    """The channels below which one client receives replies: a record of its session."""

    __slots__ = ("_highest", "_serials", "name", "resumes")

    def __init__(self, id: str, highest: int = 0, *, resumes: str = "") -> None:
        self.name = REPLIES + id
        # The name of the client's previous channel, which it wants to keep.
        self.resumes = resumes
        # The highest serial used so far.
        self._highest = highest
        # For requests that the server makes for the client.
        self._serials = Serials(SERVER)

    @classmethod
    def restored(cls, id: str) -> "ReplyChannel":
        """Return the channel of an earlier process, in which any serial may have been used."""
        return cls(id, _HIGHEST)

    def serials(self) -> list[int]:
        """Return the serials with which the next process continues."""
        return [self._highest, self._serials.counter]

    def go_on(self, serials: Sequence[int]) -> None:
        """Continue with the serials of an earlier process."""
        self._highest, self._serials.counter = serials

    @property
    def id(self) -> str:
        """The secret part of the name."""
        return self.name.removeprefix(REPLIES)

    def covers(self, reply_to: str) -> bool:
        """Return whether this is a channel below this one with a serial that the client chose."""
        has_name = reply_to.startswith(self.name)
        return has_name and _SERIAL.fullmatch(reply_to, len(self.name)) is not None

    def next_call(self) -> str:
        """Return a channel for the answer to a remote call."""
        return f"{self.name}/{self._serials.next()}"

    def address(self, reply_to: str, stamp: int) -> str:
        """Return the channel that responders publish to.

        Serials are reused, so a reply to an earlier request could answer a later one. A serial that
        is not higher than all previous ones therefore gets a suffix that is unique to the request.
        """
        return reply_to if self._serial(reply_to) > self._highest else f"{reply_to}/{stamp}"

    def use(self, reply_to: str) -> None:
        """Record that a request uses this serial."""
        self._highest = max(self._serial(reply_to), self._highest)

    def _serial(self, reply_to: str) -> int:
        return int(reply_to[len(self.name) + 1 :])


def reply_channel_of(receiver: Receiver) -> ReplyChannel | None:
    """Return the receiver's reply channel, or None if its client asked for none."""
    return record_of(receiver.records, ReplyChannel)


def give_reply_channel(receiver: Receiver, channel: ReplyChannel) -> None:
    """Give the receiver the reply channel, which replaces an earlier one."""
    receiver.records = with_record(receiver.records, channel)


def take_reply_channel(receiver: Receiver, draft: Receiver) -> None:
    """Keep the reply channel for a client that knows it. Other clients must not get its replies."""
    old, new = reply_channel_of(receiver), reply_channel_of(draft)
    if new is not None and (old is None or new.resumes != old.name):
        give_reply_channel(receiver, new)
