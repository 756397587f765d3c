"""How questions to the application end that it does not answer."""

import asyncio
from collections.abc import Mapping

import pytest

from holdfast.bayeux.state.backend_figures import Action, AskOutcome, BackendFigures
from holdfast.login.backend.asking import LIMIT_S, Asking
from holdfast.login.backend.questions import Question, Reply, permission_in
from holdfast.login.failures import NoAnswer

QUESTION = Question(Action.HANDSHAKE, b"{}", {"Cookie": "sessionid=secret"})


class Hanging:
    """An application that takes questions and never answers."""

    def __init__(self) -> None:
        self.asked = 0

    async def post(self, id: str, body: bytes, headers: Mapping[str, str], /) -> Reply:
        self.asked += 1
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


def test_what_a_client_shows_is_not_printed() -> None:
    assert "secret" not in repr(QUESTION)
