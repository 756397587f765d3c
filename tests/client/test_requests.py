"""Requests between Python clients, by a real server."""

import asyncio
import subprocess
import sys
from contextlib import AsyncExitStack
from urllib.parse import urlsplit

import pytest

from holdfast import Client, ClientError, Message, Refuse, Reply, RequestFailed, SessionEnded
from tests.chaos.proxy import Address, Proxy
from tests.client.conftest import Enter
from tests.pages import ROOT, blocks
from tests.serving import Server, Servers, environment


async def double(message: Message) -> int:
    return 2 * int(message.data)


async def failure(asking: object) -> RequestFailed:
    with pytest.raises(RequestFailed) as failed:
        await asking  # type: ignore[misc]
    return failed.value


async def test_the_return_value_of_the_callback_is_the_reply(enter: Enter) -> None:
    client, responder = await enter(), await enter()
    await responder.respond("/client/double", double)
    reply = await client.request("/client/double", 21)
    assert reply.data == 42
    assert reply.sender == responder.session_name
    assert (await client.sync_publish("/client/double", 2, timeout_s=60)).data == 4


async def test_requests_and_replies_have_mime_types(enter: Enter) -> None:
    client, responder = await enter(), await enter()
    await responder.respond("/client/same", lambda message: message)
    reply = await client.request("/client/same", "1,2", mime="text/csv")
    assert (reply.data, reply.mime) == ("1,2", "text/csv")
    assert (await client.request("/client/same", 1)).mime == "application/json"
    await responder.respond("/client/xml", lambda _: Reply("<1/>", "text/xml"))
    assert (await client.request("/client/xml", 1)).mime == "text/xml"


def test_the_program_of_the_page_gets_its_reply(servers: Servers) -> None:
    [program] = [
        each
        for each in blocks(ROOT / "docs" / "reference" / "requests.md")
        if each.kind == "program"
    ]
    code = program.at(urlsplit(servers.with_settings({}).url).netloc)
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("230 client/")


async def test_each_of_many_simultaneous_requests_gets_its_own_reply(enter: Enter) -> None:
    client, responder = await enter(), await enter()
    await responder.respond("/client/double", double)
    asking = [client.request("/client/double", number) for number in range(1000)]
    replies = await asyncio.gather(*asking)
    assert [reply.data for reply in replies] == [2 * number for number in range(1000)]


async def test_all_receivers_reply_to_a_request_to_all(enter: Enter) -> None:
    client = await enter()
    for number in range(3):
        await (await enter()).respond("/client/all", lambda _, number=number: number)
    replies = await client.request_all("/client/all", None, timeout_s=60)
    assert sorted(reply.data for reply in replies) == [0, 1, 2]


async def test_a_request_to_one_goes_to_one_receiver(enter: Enter) -> None:
    client, asked = await enter(), []
    for number in range(3):
        await (await enter()).respond("/client/one", lambda _, number=number: asked.append(number))
    for _ in range(3):
        await client.request("/client/one", None, mode="one")
    assert len(asked) == 3


async def test_a_request_without_responders_fails(enter: Enter) -> None:
    client = await enter()
    error = await failure(client.request("/client/nobody", 1))
    assert (error.code, error.text) == (404, "no_responders")


async def test_a_request_to_a_slow_responder_times_out_and_the_responder_continues(
    enter: Enter,
) -> None:
    client, responder, gate = await enter(), await enter(), asyncio.Event()

    async def slow(message: Message) -> str:
        await gate.wait()
        return f"reply to {message.data}"

    await responder.respond("/client/slow", slow)
    error = await failure(client.request("/client/slow", "first", timeout_s=0.1))
    assert (error.code, error.text) == (408, "timeout")
    gate.set()
    assert (await client.request("/client/slow", "second")).data == "reply to second"


async def test_the_responder_s_refusal_is_the_requester_s_error(enter: Enter) -> None:
    client, responder = await enter(), await enter()

    async def refuse(message: Message) -> None:
        raise Refuse("user.update.error", "the kettle is broken")

    await responder.respond("/client/refused", refuse)
    error = await failure(client.request("/client/refused", 1))
    assert (error.code, error.text) == (500, "responder_error")
    assert error.refusal is not None
    assert (error.refusal.code, error.refusal.text) == (
        "user.update.error",
        "the kettle is broken",
    )


async def test_an_exception_of_a_responder_is_an_internal_error(enter: Enter) -> None:
    client, responder = await enter(), await enter()

    def fail(message: Message) -> None:
        raise KeyError(message.data)

    await responder.respond("/client/failing", fail)
    error = await failure(client.request("/client/failing", "price"))
    assert error.refusal is not None
    assert (error.refusal.code, error.refusal.text) == (
        "user.update.internalError",
        "KeyError: 'price'",
    )


async def test_a_reply_that_json_cannot_hold_is_an_internal_error(enter: Enter) -> None:
    client, responder = await enter(), await enter()
    await responder.respond("/client/strange", lambda _: object())
    error = await failure(client.request("/client/strange", 1))
    assert error.refusal is not None
    assert error.refusal.code == "user.update.internalError"


async def test_a_request_may_be_addressed_to_a_session_by_name(
    enter: Enter, transport: str
) -> None:
    client = await enter()
    responder = await enter(session=f"asked-{transport}/1")
    await responder.respond("/client/asked", double)
    names = [responder.session_name]
    reply = await client.request("/client/asked", 4, destinations=names)
    assert reply.data == 8


async def test_a_reply_survives_a_reconnect_of_its_requester(
    server: Server, enter: Enter, transport: str
) -> None:
    address = urlsplit(server.url)
    async with Proxy(Address("127.0.0.1", address.port or 0)) as proxy, AsyncExitStack() as stack:
        client = await stack.enter_async_context(Client(proxy.url, transports=[transport]))
        responder, asked, gate = await enter(), asyncio.Event(), asyncio.Event()

        async def slow(message: Message) -> str:
            asked.set()
            await gate.wait()
            return "here it is"

        await responder.respond("/client/reconnect", slow)
        asking = asyncio.create_task(client.request("/client/reconnect", None))
        await asked.wait()
        proxy.reset()
        gate.set()
        assert (await asking).data == "here it is"


async def test_a_request_can_be_cancelled(enter: Enter) -> None:
    client, responder = await enter(), await enter()
    asked, gate = asyncio.Event(), asyncio.Event()

    async def slow(message: Message) -> None:
        asked.set()
        await gate.wait()

    await responder.respond("/client/cancelled", slow)
    asking = asyncio.create_task(client.request("/client/cancelled", 1))
    await asked.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    gate.set()


async def test_closing_the_client_fails_its_outstanding_requests(enter: Enter) -> None:
    client, responder = await enter(), await enter()
    asked, gate = asyncio.Event(), asyncio.Event()

    async def slow(message: Message) -> None:
        asked.set()
        await gate.wait()

    await responder.respond("/client/closing", slow)
    asking = asyncio.create_task(client.request("/client/closing", 1))
    await asked.wait()
    await client.close()
    with pytest.raises(ClientError, match="closed"):
        await asking
    with pytest.raises(SessionEnded):
        await client.request("/client/closing", 1)
    gate.set()


async def test_a_server_without_requests_accepts_publishes_and_requests_fail(
    servers: Servers,
) -> None:
    server = servers.with_settings({"request": False})
    async with Client(server.url) as client:
        await client.publish("/client/plain", 1)
        with pytest.raises(ClientError, match="does not offer requests"):
            await client.request("/client/plain", 1)
