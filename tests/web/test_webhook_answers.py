"""Whatever a receiver answers, and wherever it breaks off, its webhook goes on."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum
from pathlib import Path
from typing import Any, Self

import orjson
import pytest

from tests.web.people import Json
from tests.web.test_publish_requests import open_server
from tests.web.test_webhooks import KEEPS, SECRET, Hooked

pytestmark = pytest.mark.untraced

LIMIT_S = 60.0
DONE = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class RawReceiver:
    """Answers the first calls with these bytes and closes the connection, then with success."""

    def __init__(self, *answers: bytes) -> None:
        self.answers = list(answers)
        self.calls: list[Json] = []
        self._changed = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/hook"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(head.lower().partition(b"content-length:")[2].split()[0])
                self.calls.append(orjson.loads(await reader.readexactly(length)))
                self._changed.set()
                answer = self.answers.pop(0) if self.answers else DONE
                writer.write(answer)
                if answer != DONE:
                    break
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        writer.close()

    async def called(self, count: int) -> list[Any]:
        """Wait for so many calls. Returns the data of their messages."""
        async with asyncio.timeout(LIMIT_S):
            while len(self.calls) < count:
                self._changed.clear()
                await self._changed.wait()
        return [each["data"]["data"] for each in self.calls]


@asynccontextmanager
async def calling(
    home: Path, receiver: RawReceiver, given: Json | None = None, **settings: Any
) -> AsyncIterator[Hooked]:
    hook: Json = {"secret": SECRET, "allow_private": True, "delays": [20], "timeout": 2000}
    hook |= {"url": receiver.url, "channels": ["/orders/**"], **(given or {})}
    async with open_server(home, webhooks={"shop": hook}, channels=KEEPS, **settings) as made:
        yield Hooked(made, made.person(), receiver)  # type: ignore[arg-type]


class Fate(Enum):
    """What becomes of a message whose first call got an answer."""

    DONE = "done"
    LETTER = "a letter"
    REPEATED = "repeated"


H = b"HTTP/1.1 "
EMPTY = b"\r\nContent-Length: 0\r\n\r\n"
ODD: dict[str, tuple[bytes, Fate]] = {
    "nothing": (b"", Fate.REPEATED),
    "no HTTP": (b"\x00\x01\x02 garbage\r\n\r\n", Fate.REPEATED),
    "HTTP 0.9": (b"hello", Fate.REPEATED),
    "HTTP 1.0": (b"HTTP/1.0 200 OK\r\n\r\nclosed", Fate.DONE),
    "a reason that is no UTF-8": (H + b"422 N\xc3\xff\xfe" + EMPTY, Fate.LETTER),
    "a body that is no text": (
        H + b"422 No\r\nContent-Length: 10\r\n\r\n\x00\x1b[31m\xed\xa0\x80\xff",
        Fate.LETTER,
    ),
    "an unknown content encoding": (
        H + b"422 No\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
        Fate.LETTER,
    ),
    "an endless year": (
        H + b"503 No\r\nRetry-After: Fri, 31 Dec 99999999999999999999 23:59:59 GMT" + EMPTY,
        Fate.REPEATED,
    ),
    "an endless time zone": (
        H + b"503 No\r\nRetry-After: Fri, 31 Dec 1999 23:59:59 +99999999999999999999" + EMPTY,
        Fate.REPEATED,
    ),
    "status 000": (H + b"000 Zero" + EMPTY, Fate.REPEATED),
    "status 999": (H + b"999 Nines" + EMPTY, Fate.LETTER),
    "status 1000": (H + b"1000 Nines" + EMPTY, Fate.REPEATED),
    "100": (H + b"100 Continue\r\n\r\n" + H + b"200 OK" + EMPTY, Fate.DONE),
    "100 without end": ((H + b"100 Continue\r\n\r\n") * 2000, Fate.REPEATED),
    "101": (H + b"101 Switching\r\nUpgrade: a\r\nConnection: Upgrade\r\n\r\n", Fate.LETTER),
    "a huge header": (H + b"200 OK\r\nX: " + b"x" * 100_000 + EMPTY, Fate.REPEATED),
    "many headers": (H + b"200 OK" + b"\r\nX: y" * 100_000 + EMPTY, Fate.REPEATED),
    "two lengths": (H + b"200 OK\r\nContent-Length: 1" + EMPTY, Fate.REPEATED),
    "a bad chunk": (H + b"422 No\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", Fate.REPEATED),
    "a done body that is cut": (H + b"200 OK\r\nContent-Length: 9\r\n\r\n", Fate.DONE),
    "a refusing body that is cut": (H + b"422 No\r\nContent-Length: 9\r\n\r\na", Fate.LETTER),
    "a broken place to go": (H + b"302 Found\r\nLocation: http://[::1" + EMPTY, Fate.LETTER),
    "two answers": (DONE + H + b"500 No" + EMPTY, Fate.DONE),
}


@pytest.mark.parametrize(("answer", "fate"), ODD.values(), ids=ODD)
async def test_odd_answers_end_or_repeat_the_call(
    tmp_path: Path, answer: bytes, fate: Fate, caplog: pytest.LogCaptureFixture
) -> None:
    async with RawReceiver(answer) as receiver, calling(tmp_path, receiver) as shop:
        await shop.publish(1)
        await receiver.called(1)
        await shop.publish(2)
        calls = await receiver.called(3 if fate is Fate.REPEATED else 2)
        assert calls == ([1, 1, 2] if fate is Fate.REPEATED else [1, 2])
        letters = await shop.letters(fate is Fate.LETTER)
        assert [each["code"] for each in letters] == ["user.webhook.refused"] * len(letters)
        assert len(letters) == (fate is Fate.LETTER)
        assert not [each for each in caplog.records if each.exc_info]


async def test_a_receiver_may_break_off_at_any_byte(tmp_path: Path) -> None:
    answer = H + b"200 OK\r\nContent-Length: 2\r\n\r\nok"
    cut = [each for end in range(len(answer)) for each in (answer[:end], DONE)]
    count = len(answer)
    async with RawReceiver(*cut) as receiver, calling(tmp_path, receiver) as shop:
        await shop.publish(*range(count))
        while count - 1 not in await receiver.called(len(receiver.calls) + 1):
            pass
        calls = await receiver.called(1)
        assert list(dict.fromkeys(calls)) == list(range(count))
        assert len(calls) > count
        assert not await shop.letters(0)
