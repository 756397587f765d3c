"""The channels on which clients get replies to their requests."""

import re
from typing import Final

from holdfast.delivery.basics.channels import REPLIES

# The first digit of a serial: the language that chose the number; 5 to 8 are free.
JAVA: Final = 1
CPP: Final = 2
PYTHON: Final = 3
JAVASCRIPT: Final = 4
SERVER: Final = 9

_COUNT: Final = 1_000_000
_MASK: Final = 0xFFFFFFFF

_SERIAL: Final = re.compile(r"/([1-8][0-9]{6})")
_HIGHEST: Final = 9_999_999


class Serials:
    """Counts from a chosen or random number on; after 999999 comes 0.

    Like xMsg's, the counter has 32 bits: when it overflows, the numbers jump once.
    """

    def __init__(self, language: int, counter: int = 0) -> None:
        self._language = language
        self._counter = counter

    def next(self) -> int:
        """Return the next number."""
        number = self._counter & _MASK
        self._counter += 1
        return self._language * _COUNT + number % _COUNT


class ReplyChannel:
    """The channels below which one client gets replies."""

    __slots__ = ("_highest", "_serials", "name", "resumes")

    def __init__(self, id: str, highest: int = 0, *, resumes: str = "") -> None:
        self.name = REPLIES + id
        # The name of the channel that the client had before, and wants to keep.
        self.resumes = resumes
        # The highest serial that was used.
        self._highest = highest
        # For requests of the server on the client's behalf.
        self._serials = Serials(SERVER)

    @classmethod
    def restored(cls, id: str) -> "ReplyChannel":
        """Return the channel of an earlier process, in which any serial may have been used."""
        return cls(id, _HIGHEST)

    @property
    def id(self) -> str:
        """The part of the name that is secret."""
        return self.name.removeprefix(REPLIES)

    def covers(self, reply_to: str) -> bool:
        """Return whether this is a channel below this one, with a serial of the client's."""
        has_name = reply_to.startswith(self.name)
        return has_name and _SERIAL.fullmatch(reply_to, len(self.name)) is not None

    def next_call(self) -> str:
        """Return a channel for the answer of a remote call."""
        return f"{self.name}/{self._serials.next()}"

    def address(self, reply_to: str, stamp: int) -> str:
        """Return the channel that responders reply to.

        Serials are used again, so a reply to an earlier request could answer a later one. A
        serial that is not higher than all before gets a part that no other request has.
        """
        return reply_to if self._serial(reply_to) > self._highest else f"{reply_to}/{stamp}"

    def use(self, reply_to: str) -> None:
        """Note that a request has this serial."""
        self._highest = max(self._serial(reply_to), self._highest)

    def _serial(self, reply_to: str) -> int:
        return int(reply_to[len(self.name) + 1 :])
