"""Whatever is asked about histories without a session, the server answers clearly."""

import re
from collections.abc import Iterator
from random import Random
from urllib.parse import quote, urlsplit

import orjson

from tests.abuse.attacker import request
from tests.abuse.target import Target
from tests.fuzz.mutation import ODD_TEXTS, ODD_VALUES, Mutator
from tests.fuzz.test_fuzz import fuzz
from tests.fuzz.volley import Finding, fire_answers, fire_requests

KEPT = "/kept/a"
# A method, a channel and a parameter come from such a list as often as they are odd.
METHODS = ["GET", "GET", "GET", "HEAD", "OPTIONS", "POST", "PUT", "DELETE"]
CHANNELS = [KEPT, KEPT, KEPT, KEPT + "/", "/kept/*", "/none", "/meta/connect", "/service/a"]
NAMES = ["offset", "live", "envelope", "cursor"]
VALUES = ["-1", "now", "long-poll", "sse", "1", "0", "9" * 300, "_", "x_1", "\u0661"]
HEADERS = {
    "If-None-Match": ["*", '"x"', 'W/"x", "y"', ",,", "\xff"],
    "Origin": ["http://evil.test", "null", "\xff"],
    "Authorization": ["Bearer x", "Basic x", "\xff"],
    "Range": ["bytes=0-1"],
    "Last-Event-ID": ["x", "-1", "0-x_1", "0-x_1~1-x_1", "~", "0-x_" + "9" * 5000, "\xff"],
    "Accept": ["text/event-stream", "*/*"],
    "Connection": ["close", "keep-alive", "upgrade"],
}


# Who reads several channels also names patterns.
SEVERAL = [
    KEPT,
    "/kept/*",
    "/kept/**",
    "/**",
    "/*",
    "/none",
    "/meta/connect",
    "/sys/**",
    "/service/a",
]
EVENT_NAMES = ["after", "after", "ticket", "access_token", "channels", "live"]
EVENT_PATHS = ["/events", "/events", "/events", "/streams/tickets", "/events/", "/events/x"]
# All that a stream of events may have.
LINE = re.compile(rb"(retry: \d+|id: [^\r\n\0]*|event: [a-z]+|data: [^\r\n]*|:)?")


CHUNK = re.compile(rb"[0-9a-f]+\r\n(.*?)\r\n", re.S)


class Asker:
    """Asks for histories in any way."""

    def __init__(self, target: Target, dice: Random) -> None:
        self._dice = dice
        self._mutator = Mutator(dice)
        self._host = urlsplit(target.url).netloc
        body = orjson.dumps([{"channel": KEPT, "data": each} for each in range(10)])
        with target.wire() as wire:
            wire.send(request(body, {"Host": self._host}, method="POST /publish"))
            assert wire.answer().status == 200
            wire.send(request(b"", {"Host": self._host}, method=f"GET /streams{KEPT}"))
            self._end = wire.answer().headers["stream-next-offset"]

    def request(self) -> bytes:
        """A question about one channel."""
        dice = self._dice
        channel = dice.choice(CHANNELS) if dice.random() < 0.7 else f"/kept/{self._odd()}"
        names = dice.choices(NAMES, k=dice.choice([0, 1, 2, 2, 3]))
        query = "&".join(f"{name}={self._value()}" for name in names)
        return self._asked(f"/streams{channel}?{query}")

    def several(self) -> bytes:
        """A question about several channels, or for a ticket."""
        dice = self._dice
        channels = [quote(dice.choice(SEVERAL)) for _ in range(dice.choice([0, 1, 1, 2, 3, 101]))]
        channels += [f"/kept/{self._odd()}" for _ in range(dice.choice([0, 0, 1]))]
        names = dice.choices(EVENT_NAMES, k=dice.choice([0, 1, 1, 2]))
        query = [f"channel={each}" for each in channels]
        query += [f"{name}={self._value('0-')}" for name in names]
        dice.shuffle(query)
        return self._asked(f"{dice.choice(EVENT_PATHS)}?{'&'.join(query)}")

    def _asked(self, target: str) -> bytes:
        dice = self._dice
        headers = {"Host": self._host}
        for name in dice.sample([*HEADERS], dice.choice([0, 0, 1, 2])):
            headers[name] = dice.choice(HEADERS[name])
        body = dice.choice([b"", b"", b"", b"[]"])
        whole = request(body, headers, method=f"{dice.choice(METHODS)} {target}")
        whole *= dice.choice([1, 1, 1, 3])
        if dice.random() < 0.2:
            whole = self._mutator.head(whole)
        return self._mutator.raw(whole) if dice.random() < 0.1 else whole

    def _value(self, before: str = "") -> str:
        dice = self._dice
        if dice.random() < 0.3:
            return before + self._end
        return quote(dice.choice(VALUES)) if dice.random() < 0.7 else self._odd()

    def _odd(self) -> str:
        """A text with every byte escaped, which may not be UTF-8."""
        text = str(self._dice.choice([*ODD_VALUES, *ODD_TEXTS]))[:300]
        return "".join(f"%{byte:02x}" for byte in text.encode("utf-8", "surrogatepass"))


def test_any_question_about_a_history(
    either_front_end: Target, fuzz_s: float, fuzz_seed: int
) -> None:
    asker = Asker(either_front_end, Random(fuzz_seed))
    fuzz(either_front_end, asker.request, fuzz_s, fire_requests)


def test_any_question_about_several_histories(
    either_front_end: Target, fuzz_s: float, fuzz_seed: int
) -> None:
    asker = Asker(either_front_end, Random(fuzz_seed))
    fuzz(either_front_end, asker.several, fuzz_s, _fire_several)


def _fire_several(target: Target, attacks: list[bytes]) -> int:
    """Fire questions, and check that each stream has events only."""
    answers = fire_answers(target, attacks)
    for attack, answer in zip(attacks, answers, strict=True):
        for line in _lines_in(answer):
            if not LINE.fullmatch(line):
                raise Finding(f"no event: {line[:200]!r}\nafter {attack!r}")
    return sum(map(bool, answers))


def _lines_in(answer: bytes) -> Iterator[bytes]:
    """The lines of all streams of events."""
    for response in answer.split(b"HTTP/1.1 200 "):
        head, _, body = response.partition(b"\r\n\r\n")
        if b"text/event-stream" in head and b"chunked" in head:
            yield from b"".join(CHUNK.findall(body)).split(b"\n")
