"""Whatever is asked about histories without a session, the server answers clearly."""

from random import Random
from urllib.parse import quote, urlsplit

import orjson

from tests.abuse.attacker import request
from tests.abuse.target import Target
from tests.fuzz.mutation import ODD_TEXTS, ODD_VALUES, Mutator
from tests.fuzz.test_fuzz import fuzz
from tests.fuzz.volley import fire_requests

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
    "Last-Event-ID": ["x", "-1", "\xff"],
    "Accept": ["text/event-stream", "*/*"],
    "Connection": ["close", "keep-alive", "upgrade"],
}


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
        dice = self._dice
        channel = dice.choice(CHANNELS) if dice.random() < 0.7 else f"/kept/{self._odd()}"
        names = dice.choices(NAMES, k=dice.choice([0, 1, 2, 2, 3]))
        query = "&".join(f"{name}={self._value()}" for name in names)
        headers = {"Host": self._host}
        for name in dice.sample([*HEADERS], dice.choice([0, 0, 1, 2])):
            headers[name] = dice.choice(HEADERS[name])
        body = dice.choice([b"", b"", b"", b"[]"])
        whole = request(
            body, headers, method=f"{dice.choice(METHODS)} /streams{channel}?{query}"
        ) * dice.choice([1, 1, 1, 3])
        if dice.random() < 0.2:
            whole = self._mutator.head(whole)
        return self._mutator.raw(whole) if dice.random() < 0.1 else whole

    def _value(self) -> str:
        dice = self._dice
        if dice.random() < 0.3:
            return self._end
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
