"""`holdfast subscribe`, with a real server: named sessions receive what was published before."""

import asyncio
import gc
import json
import signal
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any, cast

import pytest
from typer.testing import Result

from holdfast.cli.subscribe import Subscriber
from holdfast.client import Client, Message, ReplyError, Subscription
from holdfast.delivery.routing.selections import Filter
from tests.cli.conftest import Run, lines


def published(run: Run, session: str, *data: object, channel: str = "/news") -> None:
    """Let a session subscribe to a channel, and publish there."""
    done = run("subscribe", channel, "--session", session, "--seconds", 0)
    assert done.exit_code == 0
    for each in data:
        assert run("publish", channel, each).exit_code == 0


def received(run: Run, session: str, *words: object, channel: str = "/news") -> list[Any]:
    """What the session receives, as JSON; ends with what was published up to now."""
    return lines(receive(run, session, *words, "--json", channel=channel))


def receive(run: Run, session: str, *words: object, channel: str = "/news") -> Result:
    return run("subscribe", channel, "--session", session, "--seconds", 60, *words)


def letters(run: Run, session: str) -> list[Any]:
    return lines(run("dead", "list", "--receiver", session, "--json"))


def test_waiting_messages_of_a_session_are_shown_once(run: Run) -> None:
    published(run, "shown/1", '{"n": 1}', "two")
    first, second = received(run, "shown/1", "--count", 2)
    assert (first["data"], second["data"]) == ({"n": 1}, "two")
    assert (first["channel"], first["verdict"], first["redelivered"]) == ("/news", "OK", 0)
    assert time.time() - first["published"] / 1000 < 60
    published(run, "shown/1", 3)
    assert [each["data"] for each in received(run, "shown/1", "--count", 1)] == [3]


def test_a_message_is_a_line_with_tabs_in_a_pipe(run: Run) -> None:
    published(run, "lines/1", '"a\\tb"')
    done = receive(run, "lines/1", "--count", 1)
    [line] = done.stdout.splitlines()
    when, channel, sender, data = line.split("\t")
    assert when.startswith("20")
    assert (channel, data) == ("/news", '"a\\tb"')
    assert sender.startswith("client/anonymous/")
    assert "Subscribed as client/lines/1" in done.stderr
    assert "Received 1 message\n" in done.stderr


def test_messages_beyond_the_count_stay_with_the_session(run: Run) -> None:
    published(run, "some/1", 1, 2, 3)
    assert [each["data"] for each in received(run, "some/1", "--count", 2)] == [1, 2]
    assert [each["data"] for each in received(run, "some/1", "--count", 1)] == [3]
    assert letters(run, "some/1") == []


def test_messages_of_earlier_subscriptions_of_the_session_are_shown_too(run: Run) -> None:
    published(run, "before/1", 1, channel="/old")
    assert [each["channel"] for each in received(run, "before/1", "--count", 1)] == ["/old"]


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        (("--fail-with", "user.update.error"), "user.update.error", ""),
        (
            ("--fail-with", "user.update.error", "--fail-message", "I don't want this"),
            "user.update.error",
            "I don't want this",
        ),
        (("--fail-runtime", "oops"), "user.update.internalError", "RuntimeError: oops"),
    ],
)
def test_refused_messages_are_dead_letters(
    run: Run, words: tuple[str, ...], code: str, reason: str
) -> None:
    name = f"refusing/{len(words) + len(code)}"
    published(run, name, 1, 2)
    done = receive(run, name, *words, "--count", 2)
    assert (done.exit_code, "Refused 2 messages" in done.stderr) == (0, True)
    assert [each["code"] for each in letters(run, name)] == [code] * 2
    assert all(reason in each["reason"] for each in letters(run, name))


def test_dead_letters_can_be_received_without_options(run: Run) -> None:
    # The session of an operator, who is told of each dead letter.
    only = ["--filter", "data.content = 'poison'"]
    run("subscribe", "/sys/deadMessage", "--session", "undertaker/1", "--seconds", 0, *only)
    published(run, "victim/1", "poison")
    receive(run, "victim/1", "--fail-with", "user.update.error", "--count", 1)
    [letter] = received(run, "undertaker/1", "--count", 1, channel="/sys/deadMessage")
    assert letter["data"]["content"] == "poison"
    assert letter["data"]["errorCode"] == "user.update.error"


def test_held_back_messages_come_again(run: Run) -> None:
    published(run, "held/1", 1, 2)
    receive(run, "held/1", "--fail-with", "user.update.holdback", "--count", 1)
    assert letters(run, "held/1") == []
    assert len(lines(run("session", "list", "--prefix", "held", "--held", "--json"))) == 1
    assert run("dispatcher", "resume", "held/1").exit_code == 0
    again = received(run, "held/1", "--count", 2)
    assert [(each["data"], each["redelivered"]) for each in again] == [(1, 1), (2, 0)]


def test_a_message_in_process_at_the_end_of_the_time_comes_to_the_next_run(run: Run) -> None:
    published(run, "slow/1", 1)
    done = run("subscribe", "/news", "--session", "slow/1", "--update-sleep", 60, "--seconds", 0.2)
    assert (done.exit_code, done.stdout) == (0, "")
    assert [each["data"] for each in received(run, "slow/1", "--count", 1)] == [1]


def test_a_message_in_process_at_an_interruption_comes_to_the_next_run(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def sleep(_: float) -> None:
        signal.raise_signal(signal.SIGTERM)
        await really(60)

    really = asyncio.sleep
    published(run, "interrupted/1", 1)
    with monkeypatch.context() as patch:
        patch.setattr("holdfast.cli.subscribe.asyncio.sleep", sleep)
        done = receive(run, "interrupted/1", "--update-sleep", 30)
    assert (done.exit_code, done.stdout) == (0, "")
    assert [each["data"] for each in received(run, "interrupted/1", "--count", 1)] == [1]


def test_fewer_messages_than_wanted_are_a_failure(run: Run) -> None:
    done = run("subscribe", "/nothing", "--count", 2, "--seconds", 0.1)
    assert (done.exit_code, "fewer than 2 messages arrived" in done.stderr) == (1, True)


def test_kept_messages_of_the_channel_come_first(run: Run) -> None:
    run("publish", "/kept/history", "${counter}", "--count", 3)
    words = ("subscribe", "/kept/history", "--seconds", 60, "--json")
    assert [each["data"] for each in lines(run(*words, "--history", 2, "--count", 2))] == [2, 3]
    assert len(lines(run(*words, "--history", -1, "--count", 3))) == 3


def test_filters_select_messages(run: Run) -> None:
    words = ("/news", "--session", "filter/1", "--filter", "data > 1")
    run("subscribe", *words, "--seconds", 0)
    run("publish", "/news", "${counter}", "--count", 3)
    done = run("subscribe", *words, "--count", 2, "--seconds", 60, "--json")
    assert [each["data"] for each in lines(done)] == [2, 3]


async def test_the_command_filters_messages_of_servers_without_filters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def inbox() -> AsyncIterator[Message]:
        for number in (1, 5, 2, 7):
            yield Message({"channel": "/news", "data": {"n": number}})
        yield Message({"channel": "/service/elsewhere", "data": {"n": 9}})

    subscriber = Subscriber(None, 0, 2, as_json=True)
    subscriber.filter = Filter("data.n > 3 AND channel = '/news'")
    await subscriber.show_all(cast("Subscription", inbox()))
    told = map(json.loads, capsys.readouterr().out.splitlines())
    assert [each["data"]["n"] for each in told] == [5, 7]


def test_the_command_checks_filters_for_servers_without_them(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Client, "session_name", None)
    done = run("subscribe", "/a", "--filter", "data >", "--seconds", 1)
    assert (done.exit_code, "--filter: " in done.stderr) == (2, True)


def test_the_command_subscribes_at_a_server_that_does_not_know_its_option(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscribe = Client.subscribe

    async def refuse_responds(client: Client, channel: str, callback: Any, **options: Any) -> Any:
        # The server of the test would have to be older.
        qos = dict(options["qos"] or {})
        if "responds" in qos:
            qos["elsewhere"] = qos.pop("responds")
        try:
            return await subscribe(client, channel, callback, **{**options, "qos": qos})
        except ReplyError as error:
            told = str(error.reply["error"]).replace("elsewhere", "responds")
            raise ReplyError({**error.reply, "error": told}) from None

    monkeypatch.setattr(Client, "subscribe", refuse_responds)
    words = ("/news", "/more", "--session", "older/1")
    done = run("subscribe", *words, "--seconds", 0)
    assert (done.exit_code, "is older than this command" in done.stderr) == (0, True)
    published(run, "older/1", 1)
    assert [each["data"] for each in received(run, "older/1", "--count", 1)] == [1]
    # Who asks for the option is told that there is none.
    done = run("subscribe", "/news", "--qos", '{"responds": true}', "--seconds", 0)
    assert (done.exit_code, "responds" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--fail-with", "updated"), "is not an error code: write one such as user.order.quantity"),
        (("--fail-with", "user", "--fail-runtime", "b"), "not both"),
        (("--fail-message", "b"), "needs --fail-with"),
        (("--filter", "data >"), "delivery_invalid"),
        (("--token-file", "/nowhere"), "/nowhere"),
        (("--session", "-"), "session"),
    ],
)
def test_options_that_make_no_sense_are_usage_errors(
    run: Run, words: tuple[str, ...], complaint: str, caplog: pytest.LogCaptureFixture
) -> None:
    done = run("subscribe", "/a", "--seconds", 0.1, *words)
    assert (done.exit_code, complaint in done.stderr) == (2, True)
    gc.collect()
    assert caplog.messages == []


@pytest.mark.parametrize("command", [("subscribe", "/a"), ("respond", "/a", "--reply", "1")])
def test_the_command_says_that_it_tries_again_while_no_server_is_there(
    run: Run, monkeypatch: pytest.MonkeyPatch, command: Sequence[str]
) -> None:
    monkeypatch.setattr("holdfast.cli.clients._CONNECT_TIMEOUT_S", 0.05)
    done = run(*command, HOLDFAST_URL="http://127.0.0.1:1")
    assert done.exit_code == 3
    first, last = done.stderr.splitlines()
    refused = "http://127.0.0.1:1 cannot be reached (Connection refused)"
    assert first == f"{refused}; trying again for 0.05 s"
    assert last.startswith(f"holdfast: {refused}. Is a server running there?")


def test_an_invalid_channel_is_a_usage_error(run: Run) -> None:
    done = run("subscribe", "news", "--seconds", 0.1)
    assert (done.exit_code, "write a channel such as" in done.stderr) == (2, True)
