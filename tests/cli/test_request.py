"""`holdfast request` and `holdfast respond`, each with a client of a program on the other side."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from holdfast import Client, Message, Refuse, RequestFailed
from tests.cli.conftest import Run, lines
from tests.serving import Server


@contextmanager
def responding(server: Server, channel: str) -> Iterator[None]:
    """A program that replies with its request, or refuses it if that is the text `no`."""
    is_ready = threading.Event()
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    def answer(message: Message) -> Any:
        if message.data == "no":
            raise Refuse("user.update.error", "not today")
        return {"of": message.data}

    async def respond() -> None:
        async with Client(server.url) as client, client.respond(channel, answer):
            is_ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(respond()))
    thread.start()
    assert is_ready.wait(60)
    yield
    loop.call_soon_threadsafe(stop.set)
    thread.join(60)
    loop.close()


# Another program is to answer for the session.
ANSWERS = ("--qos", '{"responds": true}')


@contextmanager
def asking(server: Server, run: Run, channel: str, *data: object) -> Iterator[list[Future[Any]]]:
    """Requests that wait for the session `ask/1`, in their order, while the block runs."""
    subscribe = ("subscribe", channel, "--session", "ask/1", *ANSWERS)
    assert run(*subscribe, "--seconds", 0).exit_code == 0
    asked = threading.Event()

    async def ask(each: object) -> Any:
        async with Client(server.url) as client:
            asking = asyncio.ensure_future(client.request(channel, each, timeout_s=60))
            # The server has accepted it when it has accepted what follows.
            await asyncio.sleep(0)
            await client.publish("/elsewhere", 1)
            asked.set()
            try:
                return (await asking).data
            except RequestFailed as error:
                return str(error)

    with ThreadPoolExecutor() as pool:
        replies = []
        for each in data:
            asked.clear()
            replies.append(pool.submit(asyncio.run, ask(each)))
            assert asked.wait(60)
        yield replies


def test_a_reply_is_a_line_of_json(server: Server, run: Run) -> None:
    with responding(server, "/echo"):
        done = run("request", "/echo", '{"a": 1}')
        assert (done.exit_code, done.stdout) == (0, '{"of":{"a":1}}\n')
        assert run("request", "/echo").stdout == '{"of":null}\n'
        [reply] = lines(run("request", "/echo", "--file", "-", "--json", input="text"))
        assert reply["data"] == {"of": "text"}
        assert reply["sender"].startswith("client/")


def test_all_replies_are_printed(server: Server, run: Run) -> None:
    with responding(server, "/all"), responding(server, "/all"):
        done = run("request", "/all", "1", "--mode", "all", "--timeout", 60)
        assert done.stdout == '{"of":1}\n' * 2
        assert run("request", "/all", "1", "--mode", "one").stdout == '{"of":1}\n'


def test_a_failed_request_prints_its_error(server: Server, run: Run) -> None:
    done = run("request", "/nobody", "1")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "404:/nobody:no_responders: nobody responds on this channel" in done.stderr
    with responding(server, "/refusing"):
        done = run("request", "/refusing", "no")
    assert done.exit_code == 1
    assert "user.update.error: not today" in done.stderr
    run("subscribe", "/late", "--session", "late/1", *ANSWERS, "--seconds", 0)
    done = run("request", "/late", "--timeout", 0.2)
    assert (done.exit_code, "408:/late:timeout" in done.stderr) == (1, True)
    assert run("request", "/a", "1", "--file", "-").exit_code == 2


def test_no_request_waits_for_a_session_that_only_shows_messages(server: Server, run: Run) -> None:
    run("subscribe", "/**", "--session", "watch/1", "--seconds", 0)
    done = run("request", "/watched", "--timeout", 60)
    assert (done.exit_code, "404:/watched:no_responders" in done.stderr) == (1, True)
    [seen] = lines(run("subscribe", "/**", "--session", "watch/1", "--count", 1, "--json"))
    assert seen["channel"] == "/watched"
    assert run("session", "end", "watch/1", "--yes").exit_code == 0


def test_a_responder_may_reply_with_a_text(server: Server, run: Run) -> None:
    with asking(server, run, "/ask/text", "first", "second") as replies:
        words = ("--session", "ask/1", "--count", 2)
        done = run("respond", "/ask/text", "--reply", '{"n": ${counter}, "of": ${data}}', *words)
        assert [each.result() for each in replies] == [
            {"n": 1, "of": "first"},
            {"n": 2, "of": "second"},
        ]
    assert done.exit_code == 0
    assert [line.split("\t")[1:4:2] for line in done.stdout.splitlines()] == [
        ["/ask/text", '"first"'],
        ["/ask/text", '"second"'],
    ]


@pytest.mark.parametrize(
    ("command", "data", "reply"),
    [
        ("cat", {"a": 1}, {"a": 1}),
        ("echo $MESSAGE_CHANNEL", 1, "/ask/command"),
        ("echo wrong >&2; exit 3", 1, "user.update.error: wrong"),
        ("exit 3", 1, "the command ended with exit code 3"),
    ],
)
def test_a_responder_may_reply_with_the_output_of_a_command(
    server: Server, run: Run, command: str, data: object, reply: object
) -> None:
    with asking(server, run, "/ask/command", data) as [answer]:
        words = ("--session", "ask/1", "--count", 1, "--json")
        [told] = lines(run("respond", "/ask/command", "--exec", command, *words))
        if isinstance(reply, str):
            assert reply in answer.result()
        else:
            assert answer.result() == reply
    is_refused = command.startswith("ex") or "exit" in command
    assert told["verdict"] == ("user.update.error" if is_refused else "OK")


def test_a_responder_needs_exactly_one_way_to_reply(run: Run) -> None:
    assert run("respond", "/a").exit_code == 2
    assert run("respond", "/a", "--reply", "1", "--exec", "cat").exit_code == 2
