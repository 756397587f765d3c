"""Publishers that number what they say, and know what became of it."""

import asyncio
import hashlib
from collections.abc import Sequence
from random import Random
from typing import Any

import orjson

from tests.chaos.history import Phase, Recorder, What
from tests.chaos.talker import Denied, Lost, NotSent, Talker, reply_to

_AGAIN_S = 0.1


def fingerprint(data: Any) -> str:
    """Of the data's bytes, whatever the order of the keys."""
    return hashlib.sha256(orjson.dumps(data, option=orjson.OPT_SORT_KEYS)).hexdigest()


class Publisher:
    """One message after the other; a careful one repeats what was certainly refused."""

    def __init__(
        self,
        name: str,
        talker: Talker,
        recorder: Recorder,
        random: Random,
        *,
        channels: Sequence[str],
        is_careful: bool = True,
        priorities: Sequence[int] = (5,),
        pause_s: float = 0.02,
    ) -> None:
        self.name = name
        self._talker = talker
        self._recorder = recorder
        self._random = random
        self._channels = channels
        self._is_careful = is_careful
        self._priorities = priorities
        self._pause_s = pause_s
        self._serial = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Publish until told to stop; then give up what is not answered soon."""
        try:
            while not stop.is_set():
                outcome = await self.publish(self._random.choice(self._channels), stop)
                is_ok = outcome is Phase.OK
                pause_s = self._random.expovariate(1 / self._pause_s) if is_ok else _AGAIN_S
                await asyncio.sleep(pause_s)
        finally:
            await self._talker.close()

    async def publish(self, channel: str, stop: asyncio.Event) -> Phase:
        """One message, and what became of it."""
        self._serial += 1
        tag = f"{self.name}-{self._serial}"
        data = {"tag": tag, "padding": "x" * self._random.randrange(200)}
        priority = self._random.choice(self._priorities)
        known = {
            "tag": tag,
            "serial": self._serial,
            "channel": channel,
            "priority": priority,
        }
        begun = self._recorder.begin(self.name, What.PUBLISH, **known, sha=fingerprint(data))
        options: dict[str, Any] = {"persistent": True, "priority": priority}
        outcome, error = await self._insist(
            {"channel": channel, "data": data, "ext": {"delivery": options}}, stop
        )
        match outcome:
            case Phase.OK:
                begun.ok()
            case Phase.FAIL:
                begun.fail(error=error)
            case _:
                begun.info(error=error)
        return outcome

    async def _insist(self, message: dict[str, Any], stop: asyncio.Event) -> tuple[Phase, str]:
        while True:
            try:
                await self._say(message)
            except NotSent as missing:
                error = str(missing)
            except Lost as lost:
                return Phase.INFO, str(lost)
            except Denied as denied:
                error = denied.error
                if denied.is_unsure:
                    return Phase.INFO, error
            else:
                return Phase.OK, ""
            if stop.is_set() or not self._is_careful:
                return Phase.FAIL, error
            await asyncio.sleep(_AGAIN_S)

    async def _say(self, message: dict[str, Any]) -> None:
        if self._talker.client_id is None:
            try:
                await self._talker.handshake({})
            except Lost as lost:
                raise NotSent(str(lost)) from lost
        try:
            reply_to(message["channel"], await self._talker.ask(message))
        except Denied as denied:
            if denied.is_session_unknown:
                self._talker.client_id = None
            raise
