"""How questions to the application end that it does not answer."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import orjson
import pytest

from holdfast.bayeux.state.backend_figures import Action, AskOutcome, BackendFigures
from holdfast.login.backend.asking import LIMIT_S, Asking
from holdfast.login.backend.questions import Question, Reply, permission_in
from holdfast.login.failures import NoAnswer

QUESTION = Question(Action.HANDSHAKE, b"{}", {"Cookie": "sessionid=secret"})


class PostAnswer(NamedTuple):
    """An answer of the application."""

    status: int
    body: bytes
    is_whole: bool


class Hanging:
    """An application that takes questions and never answers."""

    def __init__(self, enough: int = 0) -> None:
        self.asked, self._enough = 0, enough
        self.has_enough = asyncio.Event()

    async def post(self, id: str, body: bytes, headers: Mapping[str, str], /) -> Reply:
        self.asked += 1
        if self.asked >= self._enough:
            self.has_enough.set()
        await asyncio.Event().wait()
        raise AssertionError


async def outcomes(asking: Asking, count: int, limit_s: float) -> list[object]:
    asked = (asking.ask(QUESTION, permission_in, limit_s) for _ in range(count))
    return [*await asyncio.gather(*asked, return_exceptions=True)]


@pytest.fixture
def asking() -> Asking:
    asking = Asking(BackendFigures("https://shop.example"))
    asking.post = Hanging().post
    return asking


async def test_an_application_that_hangs_is_broken(asking: Asking) -> None:
    found = await outcomes(asking, 5, LIMIT_S)
    assert all(isinstance(each, NoAnswer) for each in found)
    assert asking.figures.asked == {(Action.HANDSHAKE, AskOutcome.FAILED): 5}
    assert asking.figures.is_broken
    await outcomes(asking, 1, LIMIT_S)
    assert asking.figures.asked[Action.HANDSHAKE, AskOutcome.OPEN] == 1


async def test_questions_that_waited_too_long_say_nothing_about_the_application(
    asking: Asking,
) -> None:
    await outcomes(asking, 100, 0.05)
    assert asking.figures.asked == {(Action.HANDSHAKE, AskOutcome.LATE): 100}
    assert not asking.figures.is_broken
    assert (asking.figures.open, asking.figures.waiting) == (0, 0)


async def test_a_client_that_is_answered_slowly_keeps_no_other_waiting() -> None:
    hanging = Hanging(32)

    async def post(id: str, body: bytes, headers: Mapping[str, str], /) -> Reply:
        return await hanging.post(id, body, headers) if headers else PostAnswer(200, b"", True)

    asking = Asking(BackendFigures("https://shop.example"))
    asking.post = post
    slow = replace(QUESTION, network="203.0.113.7")
    many = [asyncio.create_task(asking.ask(slow, permission_in)) for _ in range(700)]
    async with asyncio.timeout(LIMIT_S):
        await hanging.has_enough.wait()
    # Time enough for more.
    await asyncio.sleep(0.02)
    assert hanging.asked == 32
    assert asking.figures.asked == {(Action.HANDSHAKE, AskOutcome.FULL): 200}
    other = replace(QUESTION, headers={}, network="203.0.113.8")
    async with asyncio.timeout(LIMIT_S / 2):
        assert await asking.ask(other, lambda reply: reply.status) == 200
    for each in many:
        each.cancel()
    await asyncio.gather(*many, return_exceptions=True)
    assert (asking.figures.open, asking.figures.waiting) == (0, 0)
    assert asking._places.asked_by("203.0.113.7") == 0
    assert not asking._places._lines
    assert asking._places._all._value == 64


async def test_why_an_answer_is_unclear_is_one_short_line(caplog: pytest.LogCaptureFixture) -> None:
    async def post(id: str, body: bytes, headers: Mapping[str, str], /) -> Reply:
        key = "x\nERROR forged " + "y" * 60_000
        return PostAnswer(200, orjson.dumps({"allow": True, key: 1}), True)

    asking = Asking(BackendFigures("https://shop.example"))
    asking.post = post
    await outcomes(asking, 1, LIMIT_S)
    [line] = [each.getMessage() for each in caplog.records]
    assert "\n" not in line
    assert len(line) < 300


def test_what_a_client_shows_is_not_printed() -> None:
    assert "secret" not in repr(QUESTION)
