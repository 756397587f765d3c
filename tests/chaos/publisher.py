"""Publishers that number their messages, and record the outcome of each."""

import asyncio
import hashlib
from collections import deque
from collections.abc import Sequence
from random import Random
from typing import Any

import orjson

from tests.chaos.history import HistoryWriter, Phase, What
from tests.chaos.talker import Denied, Lost, Message, NotSent, Talker, reply_to

_AGAIN_S = 0.1
# After one in so many messages with keys, the publisher repeats one of so many earlier ones,
# and so it does after the first in each session.
_FORGETS_ONE_IN = 5
_REMEMBERED = 50
# Of addressed messages, one in so many has a short life; more than one destination is usual.
_MORTAL_ONE_IN = 10
_LIFE_MS = 500
_DESTINATIONS = (1, 1, 2, 3)
_TAKEN = ("OK", "QUEUED")


def fingerprint(data: Any) -> str:
    """A hash of the data that does not depend on the order of keys."""
    return hashlib.sha256(orjson.dumps(data, option=orjson.OPT_SORT_KEYS)).hexdigest()


class Publisher:
    """Publishes one message after the other; a careful one repeats what was certainly refused.

    With keys, it also repeats what may have been accepted, and now and then what was.
    """

    def __init__(
        self,
        name: str,
        talker: Talker,
        history: HistoryWriter,
        random: Random,
        *,
        channels: Sequence[str],
        is_careful: bool = True,
        has_keys: bool = False,
        priorities: Sequence[int] = (5,),
        addresses: Sequence[str] = (),
        is_work: bool = False,
        pause_s: float = 0.02,
    ) -> None:
        self.name = name
        self._talker = talker
        self._history = history
        self._random = random
        self._channels = channels
        self._is_careful = is_careful
        self._has_keys = has_keys
        # Publishes with their replies, to be repeated as if the reply had been forgotten.
        self._answered: deque[tuple[str, Message]] = deque(maxlen=_REMEMBERED)
        self._priorities = priorities
        # Subjects and sessions, to some of which each message is addressed.
        self._addresses = addresses
        self._is_work = is_work
        self._pause_s = pause_s
        self.serial = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Publish until told to stop; then give up what is not answered soon."""
        try:
            while not stop.is_set():
                session = self._talker.client_id
                outcome = await self.publish(self._random.choice(self._channels), stop)
                # A server that has just started may have forgotten keys.
                is_elsewhere = self._talker.client_id != session
                forgets = is_elsewhere or not self._random.randrange(_FORGETS_ONE_IN)
                if self._answered and forgets:
                    await self.publish_again(*self._random.choice(self._answered))
                is_ok = outcome is Phase.OK
                pause_s = self._random.expovariate(1 / self._pause_s) if is_ok else _AGAIN_S
                await asyncio.sleep(pause_s)
        finally:
            await self._talker.close()

    async def publish(self, channel: str, stop: asyncio.Event) -> Phase:
        """Publish one message, and record its outcome."""
        self.serial += 1
        tag = f"{self.name}-{self.serial}"
        data = {"tag": tag, "padding": "x" * self._random.randrange(200)}
        priority = self._random.choice(self._priorities)
        known = {
            "tag": tag,
            "serial": self.serial,
            "channel": channel,
            "priority": priority,
        }
        options: dict[str, Any] = {"persistent": True, "priority": priority}
        if self._has_keys:
            options["key"] = tag
        if self._is_work:
            known["is_work"] = True
        if self._addresses:
            known |= self._address(options)
        begun = self._history.begin(self.name, What.PUBLISH, **known, sha=fingerprint(data))
        message: Message = {"channel": channel, "data": data, "ext": {"delivery": options}}
        outcome, told = await self._insist(message, stop)
        match outcome:
            case Phase.OK:
                begun.ok(**told)
                if self._has_keys:
                    self._answered.append((tag, message))
            case Phase.FAIL:
                begun.fail(**told)
            case _:
                begun.info(**told)
        return outcome

    def _address(self, options: dict[str, Any]) -> dict[str, Any]:
        """Write destinations into the options of a publish; return what the history says of it."""
        count = min(self._random.choice(_DESTINATIONS), len(self._addresses))
        names = self._random.sample(list(self._addresses), count)
        # A message to a subject waits for it.
        options["destinations"] = [
            name if "/" in name else {"name": name, "forceQueuing": True} for name in names
        ]
        known: dict[str, Any] = {"destinations": names}
        if not self._random.randrange(_MORTAL_ONE_IN):
            options["expiration"] = {"lifeTime": _LIFE_MS, "forceDestroy": True}
            known["life_ms"] = _LIFE_MS
        return known

    async def publish_again(self, tag: str, message: Message) -> None:
        """Repeat a publish that was answered; the reply must be the same."""
        begun = self._history.begin(self.name, What.REPEAT, tag=tag)
        try:
            begun.ok(**await self._say(message))
        except (Lost, Denied) as error:
            begun.info(error=str(error))

    async def _insist(self, message: Message, stop: asyncio.Event) -> tuple[Phase, dict[str, Any]]:
        """The outcome, and what the reply says or why there is none."""
        is_unsure = False
        while True:
            try:
                return Phase.OK, await self._say(message)
            except NotSent as missing:
                error = str(missing)
            except Lost as lost:
                error, is_unsure = str(lost), True
            except Denied as denied:
                error, is_unsure = denied.error, is_unsure or denied.is_unsure
                if self._addresses and denied.is_of_destinations:
                    return Phase.INFO if is_unsure else Phase.FAIL, {"error": error}
            may_repeat = self._has_keys or (self._is_careful and not is_unsure)
            if stop.is_set() or not may_repeat:
                return Phase.INFO if is_unsure else Phase.FAIL, {"error": error}
            await asyncio.sleep(_AGAIN_S)

    async def _say(self, message: Message) -> dict[str, Any]:
        if self._talker.client_id is None:
            try:
                await self._talker.handshake({})
            except Lost as lost:
                raise NotSent(str(lost)) from lost
        try:
            reply = reply_to(message["channel"], await self._talker.ask(message))
        except Denied as denied:
            if denied.is_session_unknown:
                self._talker.client_id = None
            raise
        told = (reply.get("ext") or {}).get("delivery") or {}
        said: dict[str, Any] = {"received": str(told.get("rcvTimestamp", ""))}
        if self._addresses:
            said["taken"] = [
                each["name"].removeprefix("client/")
                for each in told["destinations"]
                if each["state"] in _TAKEN
            ]
        return said
