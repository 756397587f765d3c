"""Requests of the client, until they end."""

import asyncio
from typing import Any

import pytest

from holdfast.client.errors import ClientError, ConnectionLost, ReplyError, RequestFailed
from holdfast.client.messages import Message
from holdfast.client.outgoing import Outgoing, Repeat
from holdfast.client.requests import Requests

OWN, OTHER = "/ret/own", "/ret/other"


class ServerStandIn:
    """Keeps what is sent."""

    def __init__(self) -> None:
        self.sent: list[Outgoing] = []
        self._is_new = asyncio.Event()

    def send(
        self, message: dict[str, Any], *, repeat: Repeat, goes_first: bool = False
    ) -> Outgoing:
        reply = asyncio.get_running_loop().create_future()
        self.sent.append(Outgoing(message, reply, repeat))
        self._is_new.set()
        return self.sent[-1]

    async def next(self) -> Outgoing:
        await self._is_new.wait()
        self._is_new.clear()
        return self.sent[-1]


@pytest.fixture
def server() -> ServerStandIn:
    return ServerStandIn()


@pytest.fixture
def requests(server: ServerStandIn) -> Requests:
    requests = Requests(server.send)
    requests.begin_session(OWN)
    return requests


def asked(
    requests: Requests, *, collects: bool = False, timeout_s: float = 20.0
) -> asyncio.Task[list[Message]]:
    mode = "all" if collects else "first"
    asking = requests.ask("/price", "tea", {}, timeout_s, mode=mode, collects=collects)
    return asyncio.create_task(asking)


def reply_to(outgoing: Outgoing, data: Any = None, **fields: Any) -> Message:
    return Message({"channel": outgoing.message["ext"]["replyTo"], "data": data, **fields})


def texts(error: pytest.ExceptionInfo[RequestFailed]) -> tuple[int, str]:
    return error.value.code, error.value.text


async def test_a_request_that_finds_no_room_in_time_fails_and_says_why(
    server: ServerStandIn, requests: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.client.requests._GRACE_S", 0.0)
    asking = [asked(requests) for _ in range(256)]
    with pytest.raises(RequestFailed, match="not sent, as 256 others") as failed:
        await asked(requests, timeout_s=0.001)
    assert texts(failed) == (408, "timeout")
    assert len(server.sent) == 256
    requests.fail_all(ClientError("closed"))
    await asyncio.gather(*asking, return_exceptions=True)


async def test_a_request_says_where_it_expects_its_reply_and_gets_it(
    server: ServerStandIn, requests: Requests
) -> None:
    asking = asked(requests)
    outgoing = await server.next()
    assert outgoing.message == {
        "channel": "/price",
        "data": "tea",
        "ext": {"replyTo": OWN + "/3000000", "timeout": 20000, "request": "first"},
    }
    assert outgoing.repeat is Repeat.NEVER
    assert requests.take(reply_to(outgoing, 5))
    [reply] = await asking
    assert reply.data == 5


async def test_other_messages_are_no_replies(requests: Requests) -> None:
    assert not requests.take(Message({"channel": "/price", "data": 1}))


async def test_a_reply_that_no_request_waits_for_is_still_taken(requests: Requests) -> None:
    assert requests.take(Message({"channel": OWN + "/3000000", "data": 1}))


async def test_a_request_to_all_collects_replies_until_the_end(
    server: ServerStandIn, requests: Requests
) -> None:
    asking = asked(requests, collects=True)
    outgoing = await server.next()
    requests.take(reply_to(outgoing, 1))
    requests.take(reply_to(outgoing, "broken", ext={"status": "ERROR"}))
    requests.take(reply_to(outgoing, {"replies": 2}, ext={"status": "END"}))
    assert [each.data for each in await asking] == [1, "broken"]


async def test_an_error_of_the_server_is_raised_with_the_refusal_of_the_responder(
    server: ServerStandIn, requests: Requests
) -> None:
    asking = asked(requests)
    error = "500:/price,user.update.error:responder_error"
    said = {"error": error, "code": "user.update.error", "message": "sold out"}
    requests.take(reply_to(await server.next(), said, error=error))
    with pytest.raises(RequestFailed, match="sold out") as failed:
        await asking
    assert texts(failed) == (500, "responder_error")
    assert failed.value.refusal is not None
    assert (failed.value.refusal.code, failed.value.refusal.text) == (
        "user.update.error",
        "sold out",
    )


async def test_a_reply_with_the_status_error_is_raised(
    server: ServerStandIn, requests: Requests
) -> None:
    asking = asked(requests)
    requests.take(reply_to(await server.next(), "no tea", ext={"status": "ERROR"}))
    with pytest.raises(RequestFailed) as failed:
        await asking
    assert texts(failed) == (500, "responder_error")
    assert failed.value.reply["data"] == "no tea"
    assert failed.value.refusal is None


async def test_a_request_that_the_server_does_not_accept_fails(
    server: ServerStandIn, requests: Requests
) -> None:
    asking = asked(requests)
    refusal = ReplyError({"channel": "/price", "error": "403:/price:request_denied"})
    (await server.next()).fail(refusal)
    with pytest.raises(RequestFailed) as failed:
        await asking
    assert texts(failed) == (403, "request_denied")


async def test_a_reply_arrives_although_the_connection_was_lost_meanwhile(
    server: ServerStandIn, requests: Requests
) -> None:
    asking = asked(requests)
    outgoing = await server.next()
    outgoing.fail(ConnectionLost())
    await asyncio.sleep(0)
    requests.begin_session(OWN)
    requests.take(reply_to(outgoing, 5))
    assert [each.data for each in await asking] == [5]


async def test_a_new_session_fails_accepted_requests_and_sends_the_others(
    server: ServerStandIn, requests: Requests
) -> None:
    accepted = asked(requests)
    (await server.next()).reply.set_result({})
    waiting = asked(requests)
    outgoing = await server.next()
    requests.begin_session(OTHER)
    with pytest.raises(RequestFailed) as failed:
        await accepted
    assert texts(failed) == (402, "session_lost")
    assert outgoing.message["ext"]["replyTo"].startswith(OTHER)
    requests.take(reply_to(outgoing, 5))
    assert [each.data for each in await waiting] == [5]


async def test_a_cancelled_request_awaits_no_reply_and_leaves_nothing_to_fail(
    server: ServerStandIn, requests: Requests
) -> None:
    asking = asked(requests)
    outgoing = await server.next()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert outgoing.reply.cancelled()
    requests.fail_all(ClientError())


async def test_a_request_without_any_reply_times_out_in_the_client(
    server: ServerStandIn, requests: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.client.requests._GRACE_S", 0.0)
    with pytest.raises(RequestFailed) as failed:
        await asked(requests, timeout_s=0.001)
    assert texts(failed) == (408, "timeout")
    assert server.sent[0].reply.cancelled()


async def test_a_server_without_requests_is_not_asked(server: ServerStandIn) -> None:
    requests = Requests(server.send)
    requests.begin_session(None)
    with pytest.raises(ClientError, match="does not offer requests"):
        await asked(requests)
    assert not server.sent


async def test_requests_beyond_the_limit_wait_for_room(
    server: ServerStandIn, requests: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "_room", asyncio.Semaphore(1))
    first, second = asked(requests), asked(requests)
    outgoing = await server.next()
    assert len(server.sent) == 1
    requests.take(reply_to(outgoing, 1))
    await first
    requests.take(reply_to(await server.next(), 2))
    assert [each.data for each in await second] == [2]


async def test_a_serial_that_is_in_use_is_skipped(
    server: ServerStandIn, requests: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.client.requests._SERIALS", 2)
    slow = asked(requests)
    patient = await server.next()
    for _ in range(2):
        asking = asked(requests)
        outgoing = await server.next()
        assert outgoing.message["ext"]["replyTo"] == OWN + "/3000001"
        requests.take(reply_to(outgoing))
        await asking
    requests.take(reply_to(patient, 5))
    assert [each.data for each in await slow] == [5]


async def test_outstanding_requests_fail_when_the_client_is_closed(
    server: ServerStandIn, requests: Requests
) -> None:
    asking = asked(requests)
    await server.next()
    requests.fail_all(ClientError("closed"))
    with pytest.raises(ClientError, match="closed"):
        await asking
