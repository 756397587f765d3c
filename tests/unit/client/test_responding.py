"""What a responder's callback returns is the reply."""

import asyncio
from typing import Any

import pytest

from holdfast.client.errors import Refuse, ReplyError
from holdfast.client.messages import Message, Reply
from holdfast.client.outgoing import Outgoing, Repeat
from holdfast.client.responding import Responder


class Stage:
    """A responder with its requests."""

    def __init__(self) -> None:
        self.sent: list[Outgoing] = []
        self.finished: list[Message] = []

    def send(
        self, message: dict[str, Any], *, repeat: Repeat, goes_first: bool = False
    ) -> Outgoing:
        reply = asyncio.get_running_loop().create_future()
        self.sent.append(Outgoing(message, reply, repeat))
        return self.sent[-1]

    def responder(self, callback: Any) -> Responder:
        return Responder(callback, self.send, self.finished.append)


@pytest.fixture
def stage() -> Stage:
    return Stage()


def request(data: Any) -> Message:
    message = Message({"channel": "/double", "data": data, "ext": {"replyTo": "/ret/a/3000001"}})
    message.left = 1
    return message


def double(message: Message) -> Any:
    return message.data * 2


async def double_later(message: Message) -> Any:
    return message.data * 2


@pytest.mark.parametrize("callback", [double, double_later])
async def test_the_result_of_a_callback_is_sent_as_a_repeatable_reply(
    stage: Stage, callback: Any
) -> None:
    await stage.responder(callback)(request(4))
    [outgoing] = stage.sent
    assert outgoing.message == {"channel": "/ret/a/3000001", "data": 8, "ext": {}}
    assert outgoing.repeat is Repeat.ALWAYS


@pytest.mark.parametrize(
    ("result", "data", "mime"),
    [
        (Reply("<1/>", "text/xml"), "<1/>", "text/xml"),
        (Message({"channel": "/a", "data": "1,2", "ext": {"mime": "text/csv"}}), "1,2", "text/csv"),
        (Message({"channel": "/a", "data": 1, "ext": {"mime": 7}}), 1, "application/json"),
    ],
)
async def test_a_reply_has_the_mime_type_of_the_result(
    stage: Stage, result: object, data: object, mime: str
) -> None:
    await stage.responder(lambda _: result)(request(4))
    [outgoing] = stage.sent
    assert (outgoing.message["data"], outgoing.message["ext"]) == (data, {"mime": mime})


async def test_a_request_is_finished_when_the_server_has_the_reply(stage: Stage) -> None:
    asked = request(4)
    await stage.responder(double)(asked)
    assert asked.left == 2
    stage.sent[0].reply.set_result({})
    await asyncio.sleep(0)
    assert stage.finished == [asked]
    assert asked.refusal is None


async def test_a_message_that_is_no_request_gets_no_reply(stage: Stage) -> None:
    await stage.responder(double)(Message({"channel": "/double", "data": 4}))
    assert not stage.sent


async def test_a_refusal_of_the_callback_is_raised_and_nothing_is_sent(stage: Stage) -> None:
    def refuse(message: Message) -> None:
        raise Refuse("user.update.error", "no")

    with pytest.raises(Refuse):
        await stage.responder(refuse)(request(4))
    assert not stage.sent


@pytest.mark.parametrize(
    ("error", "refusal"),
    [
        ("409:/ret/a:duplicate_reply", None),
        ("410:/ret/a:late_reply", None),
        ("413::message_too_large", "user.update.internalError"),
    ],
)
async def test_a_refused_reply_is_a_refusal_of_its_request_unless_it_was_late_or_a_duplicate(
    stage: Stage, error: str, refusal: str | None
) -> None:
    asked = request(4)
    await stage.responder(double)(asked)
    stage.sent[0].fail(ReplyError({"channel": "/ret/a", "error": error}))
    await asyncio.sleep(0)
    assert stage.finished == [asked]
    assert getattr(asked.refusal, "code", None) == refusal
