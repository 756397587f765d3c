"""The outbox: messages that wait on disk."""

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.client.errors import (
    ClientError,
    ConnectionLost,
    OutboxFull,
    ReplyError,
    SessionEnded,
)
from holdfast.client.outbox import Outbox
from holdfast.client.outgoing import Outgoing, Repeat
from holdfast.client.posting import Posting
from holdfast.client.publish_options import takes_keys


@pytest.fixture
def outbox(tmp_path: Path) -> Iterator[Outbox]:
    outbox = Outbox(tmp_path / "outbox")
    outbox.open()
    yield outbox
    outbox.close()


def message(number: int) -> dict[str, Any]:
    return {"channel": "/a", "data": number, "ext": {}}


def waiting(outbox: Outbox) -> list[int]:
    return [each["data"] for _, each in outbox.first(1000)]


def test_messages_keep_their_order_until_they_are_removed(outbox: Outbox) -> None:
    for number in range(4):
        outbox.add(message(number))
    (first, _), (second, _) = outbox.first(2)
    outbox.remove([first, second])
    outbox.add(message(4))
    assert waiting(outbox) == [2, 3, 4]
    assert len(outbox) == 3


def test_the_messages_of_an_outbox_outlive_its_program(tmp_path: Path) -> None:
    for number in range(2):
        outbox = Outbox(tmp_path / "outbox")
        outbox.open()
        assert len(outbox) == number
        outbox.add(message(number))
        outbox.close()
    last = Outbox(tmp_path / "outbox")
    last.open()
    assert waiting(last) == [0, 1]
    last.close()


def test_a_full_outbox_says_which_limit_is_reached(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path / "outbox", max_count=2, max_bytes=1000)
    outbox.open()
    with pytest.raises(OutboxFull, match="no room below 1000 bytes"):
        outbox.add({"channel": "/a", "data": "x" * 1000})
    outbox.add(message(1))
    outbox.add(message(2))
    with pytest.raises(OutboxFull, match="2 messages, its maximum"):
        outbox.add(message(3))
    [(first, _)] = outbox.first(1)
    outbox.remove([first])
    outbox.add(message(3))
    assert waiting(outbox) == [2, 3]
    outbox.close()


def test_a_second_client_cannot_open_the_same_outbox(outbox: Outbox) -> None:
    other = Outbox(outbox.path)
    with pytest.raises(ClientError, match="another client has it"):
        other.open()


def test_a_file_that_is_no_outbox_is_refused_and_not_changed(tmp_path: Path) -> None:
    (tmp_path / "letter").write_text("Dear Joe, " * 100)
    with pytest.raises(ClientError, match="not a database"):
        Outbox(tmp_path / "letter").open()
    assert (tmp_path / "letter").read_text().startswith("Dear Joe")
    with pytest.raises(ClientError, match="cannot be used"):
        Outbox(tmp_path / "nowhere" / "outbox").open()


def test_an_outbox_that_is_not_open_takes_no_messages(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path / "outbox")
    with pytest.raises(ClientError, match="not open"):
        outbox.add(message(1))
    outbox.close()


def test_service_channels_other_than_ptp_take_no_publish_keys() -> None:
    assert takes_keys("/a")
    assert takes_keys("/service/ptp")
    assert not takes_keys("/service/chat")


class Server:
    """Answers what an outbox sends."""

    def __init__(self, *errors: Exception | None) -> None:
        """Each message gets the next error, or none; after these, none."""
        self._errors = [*errors]
        self.got: list[int] = []

    def send(
        self, message: dict[str, Any], *, repeat: Repeat, goes_first: bool = False
    ) -> Outgoing:
        assert repeat is Repeat.ALWAYS
        self.got.append(message["data"])
        reply = asyncio.get_running_loop().create_future()
        error = self._errors.pop(0) if self._errors else None
        if error is None:
            reply.set_result({})
        else:
            reply.set_exception(error)
        return Outgoing(message, reply, repeat)


def refused(error: str) -> ReplyError:
    return ReplyError({"channel": "/a", "error": error})


def posting(outbox: Outbox, server: Server) -> Posting:
    return Posting(outbox, server.send, longest_pause_s=0.001)


async def test_accepted_messages_leave_the_outbox(outbox: Outbox) -> None:
    server = Server()
    for number in range(250):
        outbox.add(message(number))
    await posting(outbox, server).send_all()
    assert server.got == [*range(250)]
    assert len(outbox) == 0


@pytest.mark.parametrize(
    "error",
    [
        ConnectionLost(),
        refused("402::session_unknown"),
        refused("429::budget_exceeded"),
        refused("503:communication.noConnection:store_unavailable"),
    ],
)
async def test_a_message_that_may_be_accepted_later_is_sent_again(
    outbox: Outbox, error: Exception
) -> None:
    server = Server(None, error)
    outbox.add(message(1))
    outbox.add(message(2))
    await posting(outbox, server).send_all()
    assert server.got == [1, 2, 2]
    assert len(outbox) == 0


async def test_a_message_that_is_refused_for_good_is_removed_and_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[Any] = []
    outbox = Outbox(tmp_path / "outbox", on_refused=lambda *each: told.append(each))
    outbox.open()
    outbox.add(message(1))
    outbox.add(message(2))
    error = refused("403:/a:publish_denied")
    await posting(outbox, Server(error)).send_all()
    assert told == [(message(1), error)]
    assert "publish_denied" in caplog.text
    assert len(outbox) == 0
    outbox.close()


async def test_a_message_whose_posting_is_cancelled_stays_and_awaits_no_reply(
    outbox: Outbox,
) -> None:
    sent: list[Outgoing] = []

    def send(message: dict[str, Any], *, repeat: Repeat, goes_first: bool = False) -> Outgoing:
        sent.append(Outgoing(message, asyncio.get_running_loop().create_future(), repeat))
        return sent[0]

    outbox.add(message(1))
    task = asyncio.create_task(Posting(outbox, send, longest_pause_s=0.001).send_all())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sent[0].reply.cancelled()
    assert waiting(outbox) == [1]


async def test_a_message_that_was_sent_when_the_session_ended_stays_in_the_outbox(
    outbox: Outbox, caplog: pytest.LogCaptureFixture
) -> None:
    outbox.add(message(1))
    with caplog.at_level(logging.INFO):
        await posting(outbox, Server(SessionEnded("over"))).send_all()
    assert waiting(outbox) == [1]
    assert "the outbox keeps 1 unsent: over" in caplog.text
