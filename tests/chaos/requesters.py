"""Clients that ask, and clients that answer them, refuse or say nothing."""

import asyncio
import math
import zlib
from collections.abc import Sequence
from enum import StrEnum
from random import Random
from typing import Any

from tests.chaos.history import HistoryWriter, What
from tests.chaos.receiver import CONNECT, is_one_in
from tests.chaos.talker import Denied, Lost, Message, NotSent, Talker, reply_to

# Long enough for a server that is killed and started again to answer in time, if it is soon.
TIMEOUT_MS = 1500
# The last requests have ended so long after everything else.
_LAST_S = 20.0
_AGAIN_S = 0.1
_PAUSE_S = 0.05
_REPEATS = 30
_FIRST_SERIAL = 4_000_000
# Of requests, by their tags, one in so many is refused, and one in so many is left unanswered.
_REFUSED_ONE_IN = 7
_IGNORED_ONE_IN = 9
_REFUSAL = "user.update.error"


class Mode(StrEnum):
    """Which replies a request is to get."""

    FIRST = "first"
    ALL = "all"


class Listener:
    """A session that acknowledges what it gets, and goes on if its server allows it."""

    # A queue without a limit of its own.
    limit = 0

    def __init__(
        self,
        name: str,
        talker: Talker,
        history: HistoryWriter,
        *,
        channels: Sequence[str] = (),
        is_named: bool = True,
    ) -> None:
        self.name = name
        self.is_subscribed = asyncio.Event()
        self._talker = talker
        self._history = history
        self._channels = channels
        self._is_named = is_named
        self._ack = 0
        self._verdicts: list[Message] = []
        # The channel of its replies.
        self._ret = ""

    @property
    def is_there(self) -> bool:
        """Whether it has a session and nothing left to do."""
        return self._talker.client_id is not None

    async def run(self, stop: asyncio.Event) -> None:
        """Listen until told to stop."""
        try:
            while not stop.is_set():
                await self._step()
        finally:
            await self._talker.close()

    async def _step(self) -> None:
        try:
            if self._talker.client_id is None:
                await self._begin()
            else:
                await self._connect()
        except Lost:
            await asyncio.sleep(_AGAIN_S)
        except Denied as denied:
            if denied.is_session_unknown:
                self._talker.client_id = None
            await asyncio.sleep(_AGAIN_S)

    async def _begin(self) -> None:
        delivery: Message = {"retries": -1}
        if self._is_named:
            delivery["session"] = self.name
        ext = {"ack": True, "delivery": delivery, "request": self._ret or True}
        reply = await self._talker.handshake(ext)
        self._ret, self._ack, self._verdicts = reply["ext"]["ret"], 0, []
        try:
            for channel in self._channels:
                await self._talker.subscribe(channel)
        except (Lost, Denied):
            self._talker.client_id = None
            raise
        self.is_subscribed.set()

    async def _connect(self) -> None:
        ext: Message = {"ack": self._ack}
        if self._verdicts:
            ext["delivery"] = {"verdicts": self._verdicts}
        message = {"channel": CONNECT, "connectionType": self._talker.connection_type, "ext": ext}
        found = await self._talker.ask(message)
        reply, self._verdicts = reply_to(CONNECT, found), []
        # A reply that carries no batch, because the store is behind, has no number.
        self._ack = reply.get("ext", {}).get("ack", self._ack)
        for event in found:
            if "data" in event:
                await self._take(event)

    async def _take(self, event: Message) -> None:
        """Do what this client does with an event, before it is acknowledged."""


class Requester(Listener):
    """Asks, and records everything that it gets to know of each request."""

    def __init__(self, *given: Any, random: Random, targets: Sequence[str]) -> None:
        super().__init__(*given)
        self._random = random
        self._targets = targets
        # By the channels of their replies: all requests, and those that may have no outcome yet.
        self._tags: dict[str, str] = {}
        self._open: dict[str, Mode] = {}
        # How many replies of receivers it got.
        self.replies = 0

    @property
    def is_there(self) -> bool:
        return super().is_there and not self._open

    async def run(self, stop: asyncio.Event) -> None:
        """Listen until told to stop, and then until all requests have ended."""
        now_s, ends_at = asyncio.get_running_loop().time, math.inf
        try:
            while not stop.is_set() or (self._open and now_s() < ends_at):
                await self._step()
                if stop.is_set() and ends_at == math.inf:
                    ends_at = now_s() + _LAST_S
        finally:
            await self._talker.close()

    async def ask(self, stop: asyncio.Event) -> None:
        """Ask one question after the other until told to stop."""
        await self.is_subscribed.wait()
        while not stop.is_set():
            await asyncio.sleep(self._random.expovariate(1 / _PAUSE_S))
            if self._talker.client_id is not None:
                await self._ask_one(self._random.choice(self._targets))

    async def _ask_one(self, channel: str) -> None:
        serial = len(self._tags) + 1
        tag, address = f"{self.name}-{serial}", f"{self._ret}/{_FIRST_SERIAL + serial}"
        mode = self._random.choice(tuple(Mode))
        self._tags[address], self._open[address] = tag, mode
        begun = self._history.begin(self.name, What.REQUEST, tag=tag, mode=mode.value)
        ext = {"replyTo": address, "timeout": TIMEOUT_MS, "request": mode.value}
        try:
            asked: Message = {"channel": channel, "data": {"tag": tag}, "ext": ext}
            reply_to(channel, await self._talker.ask(asked))
        except NotSent as missing:
            end, error = begun.fail, str(missing)
        except Denied as denied:
            end, error = begun.info if denied.is_unsure else begun.fail, denied.error
        except Lost as lost:
            end, error = begun.info, str(lost)
        else:
            begun.ok()
            return
        # Nobody knows whether anything will come.
        self._open.pop(address, None)
        end(error=error)

    async def _take(self, event: Message) -> None:
        address, data = event["channel"], event["data"]
        if not address.startswith(self._ret):
            return
        status = (event.get("ext") or {}).get("status", "")
        self.replies += "by" in data
        self._history.note(
            self.name,
            What.OUTCOME,
            tag=self._tags.get(address, address),
            id=event["ext"]["delivery"]["id"],
            by=data.get("by", ""),
            end=event.get("error", status),
            replies=data.get("replies", 0),
        )
        if status or self._open.get(address) is Mode.FIRST:
            self._open.pop(address, None)


class Responder(Listener):
    """Replies to most requests, refuses some, and leaves some to their deadline."""

    async def _take(self, event: Message) -> None:
        tag, ext = event["data"]["tag"], event["ext"]
        if "replyTo" not in ext:
            # A broken server gives it what is for others.
            return
        chance = zlib.crc32(f"{self.name} {tag}".encode())
        if is_one_in(_REFUSED_ONE_IN, chance):
            seq = ext["delivery"]["seq"]
            self._verdicts.append({"seq": seq, "errorCode": _REFUSAL, "message": "no answer"})
        elif not is_one_in(_IGNORED_ONE_IN, chance):
            await self._reply(ext["replyTo"], {"tag": f"{tag} by {self.name}", "by": self.name})

    async def _reply(self, address: str, data: Message) -> None:
        """Reply until there is an answer, as programs do that do not know what has become of it."""
        for _ in range(_REPEATS):
            try:
                reply_to(address, await self._talker.ask({"channel": address, "data": data}))
            except Lost:
                await asyncio.sleep(_AGAIN_S)
            except Denied as denied:
                if not denied.error.startswith("503"):
                    return
                await asyncio.sleep(_AGAIN_S)
            else:
                return
