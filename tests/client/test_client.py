"""The Python client with a real server, over both transports."""

import asyncio
import gc
from contextlib import suppress
from typing import Any

import aiohttp
import pytest

from holdfast import (
    Client,
    ClientState,
    Message,
    NotConnected,
    Refuse,
    ReplyError,
    SessionEnded,
    SessionTaken,
    WrongUse,
)
from tests.client.conftest import Basket, Enter
from tests.clients.mortal_server import MortalServer
from tests.serving import Server


async def test_published_messages_arrive_in_order(enter: Enter) -> None:
    client, basket = await enter(), Basket()
    await client.subscribe("/client/order/*", basket)
    await asyncio.gather(*(client.publish("/client/order/a", number) for number in range(1000)))
    assert await basket.data(1000) == [*range(1000)]
    message = basket.messages[0]
    assert (message.channel, message.subscription) == ("/client/order/a", "/client/order/*")
    assert message.sender == client.session_name
    assert message.timestamp_ns is not None


async def test_a_subscription_can_be_iterated(enter: Enter) -> None:
    client = await enter()
    async with client.subscribe("/client/iterated") as subscription:
        await client.publish("/client/iterated", "a", properties={"by": "hand"}, priority=7)
        async for message in subscription:
            assert (message.data, message.properties, message.priority) == ("a", {"by": "hand"}, 7)
            break
    await client.publish("/client/iterated", "b")
    with pytest.raises(StopAsyncIteration):
        await anext(subscription)


async def test_a_refused_message_is_a_dead_letter_and_others_are_not(
    server: Server, enter: Enter, transport: str
) -> None:
    token = (server.data / "admin-token").read_text().strip()
    operator, letters = await enter(token=token), Basket()
    channel = f"/client/refused/{transport}"
    # Sessions of other tests may end meanwhile.
    await operator.subscribe("/sys/deadMessage", letters, filter=f"data.channel = '{channel}'")
    client = await enter()

    def fail_on_odd(message: Message) -> None:
        if message.data % 2:
            raise Refuse("user.update.error", "odd")

    await client.subscribe(channel, fail_on_odd)
    await asyncio.gather(*(client.publish(channel, number) for number in range(6)))
    await letters.data(3)
    died = [letter.data for letter in letters.messages]
    said = [(each["content"], each["errorCode"], each["attempts"][0]["text"]) for each in died]
    assert said == [(number, "user.update.error", "odd") for number in (1, 3, 5)]


async def test_a_message_refused_for_now_is_processed_before_those_that_came_with_it(
    server: Server, transport: str
) -> None:
    basket, refused = Basket(), list[Message]()
    channel = f"/client/kept-order/{transport}"

    async def refuse_first(message: Message) -> None:
        if not refused:
            refused.append(message)
            raise Refuse("communication.busy", "not now", delay_s=0.1)
        await basket(message)

    session = f"kept-order-{transport}/1"
    async with (
        Client(server.url, session=session, transports=[transport]) as client,
        aiohttp.ClientSession() as http,
    ):
        await client.subscribe(channel, refuse_first)
        # They enter the queue together.
        messages = [{"channel": channel, "data": number} for number in range(5)]
        async with http.post(f"{server.url}/publish", json=messages) as answer:
            assert answer.status == 200
        assert await basket.data(5) == [*range(5)]
        await client.close(end=True)


async def test_an_exception_of_a_callback_is_logged_and_the_next_message_arrives(
    enter: Enter, caplog: pytest.LogCaptureFixture
) -> None:
    client, basket = await enter(), Basket()

    async def fail_first(message: Message) -> None:
        await basket(message)
        if message.data == 1:
            raise KeyError("price")

    await client.subscribe("/client/failing", fail_first)
    for number in (1, 2):
        await client.publish("/client/failing", number)
    assert await basket.data(2) == [1, 2]
    assert "the callback for /client/failing failed" in caplog.text


async def test_a_message_that_was_not_processed_is_redelivered_to_the_next_client(
    server: Server, transport: str
) -> None:
    name = f"again-{transport}/1"
    with suppress(ZeroDivisionError):
        async with Client(server.url, session=name, transports=[transport]) as client:
            subscription = await client.subscribe("/client/again/" + transport)
            for number in (1, 2, 3):
                await client.publish("/client/again/" + transport, number)
            async for message in subscription:
                if message.data == 2:
                    raise ZeroDivisionError
    async with Client(server.url, session=name, transports=[transport]) as client:
        assert client.is_resumed
        subscription = await client.subscribe("/client/again/" + transport)
        seen = [(await anext(subscription)).data for _ in range(2)]
        assert seen == [2, 3]
        await client.close(end=True)


async def test_refusals_of_the_server_are_raised(enter: Enter) -> None:
    client = await enter()
    with pytest.raises(ReplyError) as refused:
        await client.publish("/client/*", 1)
    assert (refused.value.code, refused.value.text) == (405, "channel_invalid")
    with pytest.raises(ReplyError):
        await client.subscribe("/client/filtered", filter="data.price >")
    with pytest.raises(ReplyError):
        async for _ in client.subscribe("/meta/connect"):
            pass


async def test_data_that_json_cannot_hold_is_a_type_error(enter: Enter) -> None:
    client = await enter()
    with pytest.raises(TypeError):
        await client.publish("/client/strange", object())
    await client.publish("/client/strange", None)


async def test_messages_of_a_batch_are_sent_in_order(enter: Enter) -> None:
    client, basket = await enter(), Basket()
    async with client.batch():
        subscribed = client.subscribe("/client/batch", basket)
        published = [asyncio.create_task(client.publish("/client/batch", n)) for n in range(3)]
    await subscribed
    await asyncio.gather(*published)
    assert await basket.data(3) == [0, 1, 2]


async def test_a_message_with_a_key_is_delivered_once(enter: Enter, transport: str) -> None:
    client, basket = await enter(), Basket()
    await client.subscribe("/client/keyed", basket)
    first = await client.publish("/client/keyed", 1, key=f"k-{transport}")
    again = await client.publish("/client/keyed", 1, key=f"k-{transport}")
    assert first.timestamp_ns == again.timestamp_ns
    await client.publish("/client/keyed", 2)
    assert await basket.data(2) == [1, 2]


async def test_a_client_listens_to_messages_for_its_session(enter: Enter, transport: str) -> None:
    client, basket = await enter(session=f"addressed-{transport}/1"), Basket()
    await client.listen("/client/ptp", basket)
    assert client.session_name == f"client/addressed-{transport}/1"
    reply = await client.publish("/client/ptp", "for you", destinations=[client.session_name])
    assert [each["state"] for each in reply.destinations] == ["OK"]
    assert await basket.data(1) == ["for you"]


async def test_two_subscriptions_of_one_channel_both_get_its_messages(enter: Enter) -> None:
    client, first, second = await enter(), Basket(), Basket()
    await client.subscribe("/client/both", first)
    other = await client.subscribe("/client/**", second)
    await client.publish("/client/both", 1)
    assert (await first.data(1), await second.data(1)) == ([1], [1])
    await other.close()
    await client.publish("/client/both", 2)
    assert await first.data(2) == [1, 2]
    assert len(second.messages) == 1


async def test_a_slow_callback_with_a_small_queue_gets_all_messages(enter: Enter) -> None:
    client, basket, gate = await enter(max_queue=10), Basket(), asyncio.Event()

    async def slow(message: Message) -> None:
        await gate.wait()
        await basket(message)

    await client.subscribe("/client/slow", slow)
    publisher = await enter()
    await asyncio.gather(*(publisher.publish("/client/slow", n) for n in range(100)))
    gate.set()
    assert await basket.data(100) == [*range(100)]


async def test_a_client_whose_session_is_taken_over_ends_and_does_not_return(
    enter: Enter, transport: str, caplog: pytest.LogCaptureFixture
) -> None:
    first = await enter(session=f"taken-{transport}/1")
    subscription = await first.subscribe("/client/taken")
    second = await enter(session=f"taken-{transport}/1")
    assert second.is_resumed
    with pytest.raises(SessionTaken):
        await anext(subscription)
    with pytest.raises(SessionTaken):
        await first.wait_closed()
    assert first.state is ClientState.CLOSED
    with pytest.raises(SessionTaken, match="another client"):
        await first.publish("/client/taken", 1)
    [record] = [each for each in caplog.records if each.levelname == "ERROR"]
    assert f"session client/taken-{transport}/1 has ended: another client" in record.getMessage()


async def test_a_session_that_the_server_ended_is_logged_and_begins_again(
    server: Server, enter: Enter, transport: str, caplog: pytest.LogCaptureFixture
) -> None:
    client, basket = await enter(session=f"ended-{transport}/1"), Basket()
    await client.subscribe(f"/client/ended/{transport}", basket)
    headers = {"Authorization": f"Bearer {(server.data / 'admin-token').read_text().strip()}"}
    url = f"{server.url}/admin/api/v1/sessions/ended-{transport}/1"
    async with aiohttp.ClientSession(headers=headers) as http:
        await (await http.delete(url)).read()
    publisher = await enter()
    while client.is_resumed or not basket.messages:
        await publisher.publish(f"/client/ended/{transport}", 1)
    assert "402::session_unknown" in caplog.text


async def test_a_message_that_is_too_large_is_refused_as_such_and_others_arrive(
    enter: Enter, transport: str, caplog: pytest.LogCaptureFixture
) -> None:
    client, basket = await enter(), Basket()
    await client.subscribe("/client/too-large", basket)
    large = "x" * 5_000_000
    found = await asyncio.gather(
        *(client.publish("/client/too-large", each) for each in (1, large, 2)),
        return_exceptions=True,
    )
    assert isinstance(found[1], ReplyError)
    assert (found[1].code, found[1].text) == (413, "request_too_large")
    assert await basket.data(2) == [1, 2]
    gc.collect()
    assert "never retrieved" not in caplog.text


def until_lost(transport: str) -> tuple[dict[str, Any], asyncio.Event]:
    """Options of a client, and what is set when it has lost its server."""
    lost = asyncio.Event()

    def note(state: ClientState) -> None:
        if state is ClientState.DISCONNECTED:
            lost.set()

    return {"transports": [transport], "on_state": note}, lost


async def test_a_publish_waits_no_longer_than_it_is_told_and_is_not_sent_then(
    mortal: MortalServer, transport: str
) -> None:
    options, lost = until_lost(transport)
    async with Client(mortal.alive.url, session="late/1", **options) as client:
        basket = Basket()
        await client.subscribe("/client/late", basket)
        mortal.alive.process.kill()
        mortal.alive.process.wait()
        await lost.wait()
        with pytest.raises(NotConnected, match="was not sent"):
            await client.publish("/client/late", 1, timeout_s=0.1)
        await asyncio.to_thread(mortal.kill_and_start)
        await client.publish("/client/late", 2, timeout_s=60)
        assert await basket.data(1) == [2]


async def test_a_client_says_at_once_that_its_server_does_not_answer(
    mortal: MortalServer, transport: str, caplog: pytest.LogCaptureFixture
) -> None:
    options, lost = until_lost(transport)
    async with Client(mortal.alive.url, close_timeout_s=0.1, **options):
        mortal.alive.process.kill()
        mortal.alive.process.wait()
        await lost.wait()
        [record] = [each for each in caplog.records if each.levelname == "WARNING"]
        assert f"{mortal.alive.url}/cometd does not answer" in record.getMessage()


async def test_a_client_says_within_a_second_that_nobody_answers(
    transport: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.client.conversation._QUIET_S", 0.05)

    over = asyncio.Event()

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        await writer.wait_closed()
        over.set()

    async with await asyncio.start_server(say_nothing, "127.0.0.1", 0) as silent:
        url = f"http://127.0.0.1:{silent.sockets[0].getsockname()[1]}"
        with pytest.raises(NotConnected):
            async with Client(url, transports=[transport], connect_timeout_s=0.2):
                pass
        await over.wait()
    assert f"no session at {url}/cometd so far: there is no answer yet" in caplog.text


async def test_a_callback_may_close_its_client(
    enter: Enter, caplog: pytest.LogCaptureFixture
) -> None:
    client = await enter(close_timeout_s=60)
    await client.subscribe("/client/farewell", lambda message: client.close())
    await client.publish("/client/farewell", 1)
    async with asyncio.timeout(60):
        await client.wait_closed()
    assert client.state is ClientState.CLOSED
    await client.close()
    assert not caplog.records


async def test_a_client_that_ends_its_session_begins_no_other(enter: Enter, transport: str) -> None:
    first = await enter(session=f"ended-{transport}/1")
    # Its first connect leaves behind the goodbye, and is refused.
    await first.close(end=True)
    second = await enter(session=f"ended-{transport}/1")
    assert not second.is_resumed
    await second.close(end=True)


@pytest.mark.parametrize("session", [None, "waited/1"])
async def test_waiting_for_the_close_of_a_client_that_the_program_closes_raises_nothing(
    enter: Enter, session: str | None
) -> None:
    client, basket = await enter(session=session), Basket()
    await client.subscribe("/client/waited", basket)
    await client.publish("/client/waited", 1)
    # The server answers the connect that it holds when the client leaves.
    await basket.data(1)
    waiting = asyncio.create_task(client.wait_closed())
    await client.close()
    await waiting
    assert client.state is ClientState.CLOSED


async def test_a_client_may_be_closed_twice_at_the_same_time(enter: Enter) -> None:
    client = await enter()
    await asyncio.gather(client.close(), client.close())
    assert client.state is ClientState.CLOSED


@pytest.mark.parametrize("turns", [1, 2, 3])
async def test_a_client_that_is_interrupted_while_it_closes_leaves_nothing_open(
    server: Server, transport: str, turns: int
) -> None:
    reports = list[str]()
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: reports.append(context["message"]))
    client = await Client(server.url, transports=[transport]).__aenter__()
    closing = asyncio.create_task(client.close())
    for _ in range(turns):
        await asyncio.sleep(0)
    closing.cancel()
    await asyncio.wait([closing])
    del client, closing
    gc.collect()
    assert reports == []


async def test_a_loop_ends_with_its_client_and_leaves_the_rest_to_the_next_one(
    enter: Enter, transport: str
) -> None:
    first = await enter(session=f"loop-{transport}/1")
    loop, basket = await first.subscribe("/client/loop"), Basket()
    await first.subscribe("/client/*", basket)
    for number in range(3):
        await first.publish("/client/loop", number)
    await basket.data(3)
    assert (await anext(loop)).data == 0
    await first.close()
    with pytest.raises(StopAsyncIteration):
        await anext(loop)
    second, rest = await enter(session=f"loop-{transport}/1"), Basket()
    await second.subscribe("/client/loop", rest)
    assert await rest.data(3) == [0, 1, 2]
    await second.close(end=True)


async def test_an_exception_of_on_state_is_logged_and_the_session_continues(
    enter: Enter, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(state: ClientState) -> None:
        raise ValueError(f"no use for {state.value}")

    client, basket = await enter(on_state=fail), Basket()
    await client.subscribe("/client/on_state", basket)
    await client.publish("/client/on_state", 1)
    assert await basket.data(1) == [1]
    await client.close()

    assert client.state is ClientState.CLOSED
    logged = [each.getMessage() for each in caplog.records if each.name == "holdfast.client.client"]
    assert logged == [
        f"on_state failed for {state}"
        for state in ("handshaking", "connected", "closing", "closed")
    ]
    assert "ValueError: no use for connected" in caplog.text


async def test_a_client_can_be_used_only_while_it_is_entered(server: Server) -> None:
    states: list[ClientState] = []
    client = Client(server.url, on_state=states.append)
    with pytest.raises(WrongUse):
        _ = client.subscribe("/client/early")
    async with client:
        assert client.state is ClientState.CONNECTED
    with pytest.raises(SessionEnded):
        await client.publish("/client/late", 1)
    with pytest.raises(WrongUse):
        await client.__aenter__()
    assert states == [
        ClientState.HANDSHAKING,
        ClientState.CONNECTED,
        ClientState.CLOSING,
        ClientState.CLOSED,
    ]
