"""Whatever is sent, the server answers clearly, has no fault, and serves everybody else.

`pytest tests/fuzz --fuzz-seconds 3600` fuzzes for an hour, `--fuzz-seed N` as an earlier run did.
"""

import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from random import Random
from typing import Any
from urllib.parse import urlsplit

import orjson
import pytest

from tests.abuse.attacker import frame, request
from tests.abuse.target import Target
from tests.fuzz.corpus.administration import ADMINISTRATION, TOKEN
from tests.fuzz.corpus.finding import CLIENT, seeds
from tests.fuzz.corpus.frames import FRAMES
from tests.fuzz.corpus.messages import MESSAGES
from tests.fuzz.corpus.requests import REQUESTS
from tests.fuzz.corpus.valid import VALID
from tests.fuzz.mutation import ODD_TEXTS, ODD_VALUES, Mutator
from tests.fuzz.volley import (
    CLOSE_CODES,
    Finding,
    check_answer,
    check_messages,
    fire,
    fire_requests,
)
from tests.web.front_end_cases import CASES

# The number of attacks at the same time.
VOLLEY = 16
# With fewer answers than this, the requests are too invalid to reach any code.
REACHED = 0.3

Attack = Callable[[], bytes]

_MESSAGES, _FRAMES, _ADMINISTRATION = seeds(MESSAGES), seeds(FRAMES), seeds(ADMINISTRATION)
_REQUESTS = [*(sent for sent, _ in CASES.values()), *seeds(REQUESTS)]


def fuzz(
    target: Target, attack: Attack, seconds: float, fire: Callable[[Target, list[bytes]], int]
) -> None:
    """Fire volleys until the time is over, and check that most attacks get an answer."""
    fired = answered = 0
    until = time.monotonic() + seconds
    with target.bystander():
        while fired == 0 or time.monotonic() < until:
            attacks = [attack() for _ in range(VOLLEY)]
            answered += fire(target, attacks)
            fired += VOLLEY
    assert answered > REACHED * fired


def written(messages: list[Any], client_id: str) -> bytes:
    return json.dumps(messages).encode().replace(CLIENT.encode(), client_id.encode())


class Speaker:
    """A client with a session, without which most messages have no effect."""

    def __init__(self, target: Target, dice: Random) -> None:
        self._target = target
        self._dice = dice
        self._mutator = Mutator(dice)
        self._host = urlsplit(target.url).netloc.encode()

    def say(self) -> bytes:
        """The JSON of a request."""
        if self._dice.random() < 0.3:
            text = self._dice.choice(_MESSAGES).replace(CLIENT.encode(), self.client_id.encode())
            return self._mutator.text(text)
        messages = self._dice.choice(VALID) * self._dice.choice([1, 1, 1, 2, 30])
        return self._mutator.text(written(self._mutator.messages(messages), self.client_id))

    def request(self) -> bytes:
        if self._dice.random() < 0.4:
            whole = self._dice.choice(_REQUESTS).replace(b"holdfast.test", self._host)
        else:
            whole = request(self.say(), {"Host": self._host.decode(), "Cookie": self.cookie})
        if self._dice.random() < 0.4:
            whole = self._mutator.head(whole)
        return self._mutator.raw(whole) if self._dice.random() < 0.2 else whole

    def frames(self) -> bytes:
        if self._dice.random() < 0.1:
            return self._dice.choice(_FRAMES)
        text = self.say()
        cut = self._dice.randint(0, len(text))
        whole = self._dice.choice(
            [frame(text), frame(text[:cut], is_final=False) + frame(text[cut:], 0x0)]
        )
        return self._mutator.raw(whole) if self._dice.random() < 0.3 else whole

    def settle_in(self) -> None:
        with self._target.person() as person:
            self.client_id, self.cookie = person.client_id, person.headers["Cookie"]


def test_any_request(either_front_end: Target, fuzz_s: float, fuzz_seed: int) -> None:
    speaker = Speaker(either_front_end, Random(fuzz_seed))

    def fire_as_somebody(target: Target, attacks: list[bytes]) -> int:
        answered = fire_requests(target, attacks)
        speaker.settle_in()
        return answered

    speaker.settle_in()
    fuzz(either_front_end, speaker.request, fuzz_s, fire_as_somebody)


def fire_frames(target: Target, attacks: list[bytes]) -> int:
    """Send each frame over a socket with a session of its own."""
    with ExitStack() as open_ones:
        people = [open_ones.enter_context(target.socket_person()) for _ in attacks]
        own = [
            attack.replace(CLIENT.encode(), person.client_id.encode())
            for attack, person in zip(attacks, people, strict=True)
        ]
        heard = fire(target, people, own)
    for attack, answer in zip(own, heard, strict=True):
        check_frames(attack, answer)
    return sum(map(bool, heard))


def check_frames(attack: bytes, answer: bytes) -> None:
    """Check that the server sent messages, pongs and at most one close, at the end."""
    while len(answer) >= 2:
        opcode, size, head = answer[0] & 0x0F, answer[1], 2
        if size > 125:
            head += 2 if size == 126 else 8
            size = int.from_bytes(answer[2:head], "big")
        payload, answer = answer[head : head + size], answer[head + size :]
        if opcode == 0x1:
            check_messages(attack, payload)
        elif opcode == 0x8 and payload:
            code = int.from_bytes(payload[:2], "big")
            if code not in CLOSE_CODES and payload[:2] not in attack:
                raise Finding(f"closed with {code}\nafter {attack!r}")


def test_any_frames(target: Target, fuzz_s: float, fuzz_seed: int) -> None:
    speaker = Speaker(target, Random(fuzz_seed))
    # A placeholder for the real one, until that is known.
    speaker.client_id = CLIENT
    fuzz(target, speaker.frames, fuzz_s, fire_frames)


class Operator:
    """Sends valid and malformed requests to every route of the administration."""

    def __init__(self, target: Target, token: str, dice: Random) -> None:
        self._dice = dice
        self._mutator = Mutator(dice)
        self._token = token
        self._host = urlsplit(target.url).netloc
        with target.wire() as wire:
            wire.send(self._written("GET", "/openapi.json", b"", token))
            document = orjson.loads(wire.answer().body)
        self._operations = [
            (method.upper(), path, operation)
            for path, item in document["paths"].items()
            for method, operation in item.items()
            if method in ("get", "post", "put", "patch", "delete")
        ]
        assert len(self._operations) > 10

    def request(self) -> bytes:
        if self._dice.random() < 0.2:
            whole = self._dice.choice(_ADMINISTRATION).replace(TOKEN.encode(), self._token.encode())
            return self._mutator.raw(whole)
        method, path, operation = self._dice.choice(self._operations)
        path = path.removeprefix("/admin/api/v1")
        for name in [part for part in path.split("/") if part.startswith("{")]:
            path = path.replace(name, self._word())
        names = [
            each["name"] for each in operation.get("parameters", []) if each.get("in") == "query"
        ]
        query = [f"{name}={self._word()}" for name in names if self._dice.random() < 0.4]
        body = b""
        if method != "GET":
            body = self._mutator.text(written(self._mutator.messages([self._body()]), CLIENT)[1:-1])
        token = self._dice.choice([self._token, self._token, self._token, "", "wrong"])
        whole = self._written(method, path + ("?" + "&".join(query) if query else ""), body, token)
        return self._mutator.head(whole) if self._dice.random() < 0.3 else whole

    def _body(self) -> dict[str, Any]:
        names = [
            "filter",
            "where",
            "channel",
            "receiver",
            "code",
            "ids",
            "dry_run",
            "confirm",
            "command",
            "reason",
        ]
        return {name: self._dice.choice(ODD_VALUES) for name in self._dice.sample(names, 3)}

    def _word(self) -> str:
        value = self._dice.choice([*ODD_VALUES, *ODD_TEXTS, "1", "10", "joe/1", "20261122000000-1"])
        return "".join(f"%{byte:02x}" for byte in str(value)[:300].encode())

    def _written(self, method: str, path: str, body: bytes, token: str) -> bytes:
        headers = {
            "Host": self._host,
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
        }
        return request(body, headers, method=f"{method} /admin/api/v1{path}")


def test_any_administration(target: Target, token: str, fuzz_s: float, fuzz_seed: int) -> None:
    operator = Operator(target, token, Random(fuzz_seed))
    fuzz(target, operator.request, fuzz_s, fire_requests)


def test_the_same_seed_makes_the_same_attacks(target: Target) -> None:
    def attacks() -> list[bytes]:
        speaker = Speaker(target, Random(7))
        speaker.client_id, speaker.cookie = CLIENT, "BAYEUX_BROWSER=x"
        return [speaker.request() for _ in range(50)] + [speaker.frames() for _ in range(50)]

    assert attacks() == attacks()


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n",
        b'HTTP/1.1 200 OK\r\n\r\n[{"successful":false,"error":"something is wrong"}]',
        b'HTTP/1.1 200 OK\r\n\r\n[{"successful":false}]',
    ],
)
def test_a_fault_is_found(answer: bytes) -> None:
    with pytest.raises(Finding, match="what was sent"):
        check_answer(b"what was sent", answer)
