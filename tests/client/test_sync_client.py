"""The client for programs without an event loop, with a real server."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from queue import SimpleQueue
from threading import enumerate as threads
from typing import Any

import pytest

from holdfast import (
    ClientState,
    Message,
    NotConnected,
    Refuse,
    ReplyError,
    RequestFailed,
    SessionEnded,
    SyncClient,
    WrongUse,
)
from tests.serving import ROOT, Server, environment


@pytest.fixture
def client(server: Server) -> Iterator[SyncClient]:
    with SyncClient(server.url) as client:
        yield client


def test_a_loop_over_a_subscription_gets_published_messages(client: SyncClient) -> None:
    subscription = client.subscribe("/sync/iterated")
    reply = client.publish("/sync/iterated", 1, priority=7)
    client.publish("/sync/iterated", 2)
    assert reply.timestamp_ns is not None
    seen = []
    for message in subscription:
        seen.append(message.data)
        if message.data == 2:
            break
    assert seen == [1, 2]
    assert client.state is ClientState.CONNECTED
    assert client.session_name is not None
    assert not client.is_resumed


def test_waiting_for_the_next_message_may_time_out(client: SyncClient) -> None:
    subscription = client.subscribe("/sync/next")
    with pytest.raises(TimeoutError):
        subscription.next(timeout_s=0.01)
    client.publish("/sync/next", 1)
    assert subscription.next(timeout_s=60).data == 1


def test_callbacks_run_in_threads_and_may_use_the_client(client: SyncClient) -> None:
    arrived = SimpleQueue[Any]()

    def pass_on(message: Message) -> None:
        client.publish("/sync/second", message.data + 1)

    client.subscribe("/sync/first", pass_on)
    client.subscribe("/sync/second", lambda message: arrived.put(message.data))
    client.publish("/sync/first", 1)
    assert arrived.get(timeout=60) == 2


def test_a_responder_replies_and_refuses(client: SyncClient) -> None:
    def halve(message: Message) -> int:
        if message.data % 2:
            raise Refuse("user.update.error", "odd")
        return int(message.data) // 2

    client.respond("/sync/half", halve)
    assert client.request("/sync/half", 8).data == 4
    assert [each.data for each in client.request_all("/sync/half", 6, timeout_s=60)] == [3]
    with pytest.raises(RequestFailed) as failed:
        client.sync_publish("/sync/half", 7)
    assert failed.value.refusal is not None
    assert failed.value.refusal.text == "odd"


def test_a_message_that_is_refused_in_a_loop_becomes_a_dead_letter(
    server: Server, client: SyncClient
) -> None:
    token = (server.data / "admin-token").read_text().strip()
    with (
        SyncClient(server.url, token=token) as operator,
        client.subscribe("/sync/refused") as subscription,
    ):
        letters = operator.subscribe("/sys/deadMessage", filter="data.channel = '/sync/refused'")
        client.publish("/sync/refused", "bad")
        next(subscription)
        subscription.refuse("user.update.error", "no")
        assert letters.next(timeout_s=60).data["content"] == "bad"


def test_refusals_of_the_server_are_raised(client: SyncClient) -> None:
    with pytest.raises(ReplyError):
        client.subscribe("/meta/connect")
    with pytest.raises(ReplyError):
        client.publish("/sync/*", 1)


def test_a_subscription_that_is_closed_ends_its_loop(client: SyncClient) -> None:
    subscription = client.subscribe("/sync/closed")
    subscription.close()
    assert [*subscription] == []


def test_a_message_that_was_not_processed_waits_for_the_next_client(server: Server) -> None:
    with suppress(ZeroDivisionError), SyncClient(server.url, session="sync/1") as client:
        subscription = client.subscribe("/sync/again")
        client.publish("/sync/again", 1)
        for _ in subscription:
            raise ZeroDivisionError
    with SyncClient(server.url, session="sync/1") as client:
        assert client.is_resumed
        assert client.subscribe("/sync/again").next(timeout_s=60).data == 1
        client.close(end=True)


def test_a_client_listens_to_messages_for_its_session(server: Server) -> None:
    with SyncClient(server.url, session="sync-listens/1") as client:
        listening = client.listen("/sync/ptp")
        client.publish("/sync/ptp", 1, destinations=["sync-listens/1"])
        assert listening.next(timeout_s=60).data == 1
        client.close(end=True)


def test_a_client_that_is_closed_or_not_entered_raises_an_error(server: Server) -> None:
    client = SyncClient(server.url)
    with pytest.raises(WrongUse, match="enter"):
        client.publish("/sync/early", 1)
    with client:
        client.close()
        with pytest.raises(SessionEnded):
            client.publish("/sync/late", 1)
    with pytest.raises(SessionEnded, match="closed"):
        client.publish("/sync/late", 1)


def test_a_call_in_the_thread_of_the_event_loop_is_an_error(server: Server) -> None:
    wrong = SimpleQueue[Exception]()

    def publish(state: ClientState) -> None:
        try:
            own.publish("/sync/deadlock", 1)
        except WrongUse as error:
            wrong.put(error)

    own = SyncClient(server.url, on_state=publish)
    with own:
        assert "on_state" in str(wrong.get(timeout=60))


def test_an_unreachable_server_is_an_error_and_leaves_no_thread() -> None:
    before = {*threads()}
    client = SyncClient("http://127.0.0.1:9", connect_timeout_s=0.1)
    with pytest.raises(NotConnected), client:
        pass
    # Those of earlier tests may end meanwhile.
    assert not {*threads()} - before


SCRIPT = """
import sys
from holdfast import SyncClient
with SyncClient(sys.argv[1], session="interrupted/1") as client:
    subscription = client.subscribe("/sync/interrupted")
    client.publish("/sync/interrupted", 1)
    for message in subscription:
        print(message.data, flush=True)
        sys.stdin.read()
"""


def test_ctrl_c_ends_a_loop_and_its_unfinished_message_is_redelivered(server: Server) -> None:
    script = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, server.url],
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert script.stdout is not None
    assert script.stdout.readline() == "1\n"
    script.send_signal(signal.SIGINT)
    _, errors = script.communicate(timeout=60)
    assert errors.rstrip().endswith("KeyboardInterrupt")
    with SyncClient(server.url, session="interrupted/1") as client:
        assert client.is_resumed
        assert client.subscribe("/sync/interrupted").next(timeout_s=60).data == 1
        client.close(end=True)
