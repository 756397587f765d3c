"""What two shards say to each other on a link about facts: see `cluster/agreement.py`."""

from collections.abc import Callable
from typing import Protocol

from holdfast.web.forwarding.frames import Kind, pack
from holdfast.web.forwarding.shard_link import Handlers, Link

# Answers with the place in the asker's log up to which all facts are known.
Answer = Callable[[str], None]


class FactsAsked(Protocol):
    """What a shard answers to others."""

    def asked(self, shard: int, place: str, answer: Answer, /) -> None:
        """Answer when the facts of that shard are known up to this place in its log."""
        ...

    def lives(self, shard: int, /) -> None:
        """Take note that the shard lives. It is told that this was done."""
        ...


class FactsHeard(Protocol):
    """What a shard does with answers of others."""

    def known(self, shard: int, place: str, /) -> None:
        """Take note that the shard knows all facts up to this place in the log of this one."""
        ...

    def heard(self, shard: int, number: int, /) -> None:
        """Take note that the shard has heard that this one lives."""
        ...


class FactsOut:
    """The end at the door: it asks the shard of a home, and says that its own shard lives.

    Args:
        shard: The number of the other shard.
    """

    def __init__(self, shard: int) -> None:
        self._shard = shard
        self._link: Link | None = None
        # What hears the answers.
        self.port: FactsHeard | None = None
        self.handlers: Handlers = {Kind.FACTS_KNOWN: self._known, Kind.LIFE_HEARD: self._heard}

    def begin(self, link: Link) -> None:
        """Use a new link."""
        self._link = link

    def lost(self) -> None:
        """The link has ended."""
        self._link = None

    def ask(self, place: str) -> None:
        """Ask to be told when all facts up to this place are known."""
        if self._link is not None:
            self._link.send(pack(Kind.ASK_FACTS, 0, place.encode()))

    def say_alive(self, number: int) -> None:
        """Say that this process lives; the answer has the same number."""
        if self._link is not None:
            self._link.send(pack(Kind.ALIVE, number))

    def _known(self, _: int, place: bytes) -> None:
        if self.port is not None:
            self.port.known(self._shard, place.decode())

    def _heard(self, number: int, _: bytes) -> None:
        if self.port is not None:
            self.port.heard(self._shard, number)


class FactsIn:
    """The end at the home."""

    def __init__(self, port: FactsAsked) -> None:
        self._port = port
        self._link: Link | None = None
        self._shard = 0
        self.handlers: Handlers = {Kind.ASK_FACTS: self._asked, Kind.ALIVE: self._lives}

    def begin(self, link: Link, shard: int) -> None:
        """Answer this shard, which has the other end of the link."""
        self._link, self._shard = link, shard

    def lost(self) -> None:
        """The link has ended."""
        self._link = None

    def _asked(self, _: int, place: bytes) -> None:
        self._port.asked(self._shard, place.decode(), self._answer)

    def _answer(self, place: str) -> None:
        if self._link is not None:
            self._link.send(pack(Kind.FACTS_KNOWN, 0, place.encode()))

    def _lives(self, number: int, _: bytes) -> None:
        self._port.lives(self._shard)
        if self._link is not None:
            self._link.send(pack(Kind.LIFE_HEARD, number))
