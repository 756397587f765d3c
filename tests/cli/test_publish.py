"""`holdfast publish`, with a real server."""

import gc
import re
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from holdfast.cli import publish
from holdfast.cli.clients import refusal
from holdfast.client import Client, PublishReply, ReplyError, SessionEnded
from tests.cli.conftest import Run, kept, lines
from tests.serving import Server
from tests.unit.login.signing import token


def test_publish_prints_the_id_of_each_message(run: Run) -> None:
    done = run("publish", "/kept/ids", '{"n": ${counter}}', "--count", 3)
    ids = done.stdout.splitlines()
    assert (done.exit_code, len(ids)) == (0, 3)
    assert all(re.fullmatch(r"[a-z0-9-]+-\d{19}", id) for id in ids)
    assert "Published 3 messages" in done.stderr
    assert kept(run, "/kept/ids") == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_channels_and_texts_have_placeholders(run: Run) -> None:
    assert run("publish", "/kept/holders/${counter}", "--count", 2).exit_code == 0
    [text] = kept(run, "/kept/holders/2")
    assert re.fullmatch(r"Hi-2-\d{19}", str(text))
    run("publish", "/kept/holders/date", "at ${date}, ${unknown}")
    [text] = kept(run, "/kept/holders/date")
    assert re.fullmatch(r"at \d{4}-\d\d-\d\dT[\d:.]+[+-]\d\d:\d\d, \$\{unknown\}", str(text))


@pytest.mark.parametrize(
    ("given", "published"),
    [("42", 42), ('"42"', "42"), ("hello", "hello"), ('{"a": [null]}', {"a": [None]}), ("{", "{")],
)
def test_data_that_is_valid_json_is_sent_as_json(run: Run, given: str, published: object) -> None:
    channel = f"/kept/forms/{abs(hash(given))}"
    run("publish", channel, given)
    assert kept(run, channel) == [published]


@pytest.mark.parametrize(("given", "is_said"), [("{text: hello}", True), ("hello", False)])
def test_data_that_was_probably_meant_as_json_is_sent_as_a_text_with_a_warning(
    run: Run, given: str, is_said: bool
) -> None:
    done = run("publish", f"/kept/meant/{is_said}", given)
    assert done.exit_code == 0
    assert (f"no JSON, so it is sent as a text: {given}" in done.stderr) == is_said
    assert kept(run, f"/kept/meant/{is_said}") == [given]


def test_each_line_of_standard_input_is_a_message(run: Run) -> None:
    done = run("publish", "/kept/lines", "--file", "-", "--lines", "--json", input='1\n\n"b"\nc')
    assert [(each["n"], each["error"]) for each in lines(done)] == [(1, None), (2, None), (3, None)]
    assert kept(run, "/kept/lines") == [1, "b", "c"]


def test_a_file_is_one_message(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "data.json"
    file.write_text('{\n  "a": 1\n}\n')
    run("publish", "/kept/file", "--file", file)
    assert kept(run, "/kept/file") == [{"a": 1}]
    file.write_bytes(b"\xff")
    assert "must be UTF-8" in run("publish", "/kept/file", "--file", file).stderr


def test_a_message_may_be_a_text_of_a_given_size(run: Run) -> None:
    run("publish", "/kept/size", "--size", 1000)
    assert kept(run, "/kept/size") == ["x" * 1000]


def test_messages_with_the_same_key_and_subject_are_delivered_once(run: Run) -> None:
    words = ("--key", "k-${counter}", "--count", 2, "--session", "keeper")
    first, again = (run("publish", "/kept/key", *words) for _ in range(2))
    assert first.stdout == again.stdout
    assert len(kept(run, "/kept/key")) == 2


def test_options_arrive_with_the_message(run: Run) -> None:
    words = ("--priority", 7, "--property", "a=1", "--property", "b=x=y", "--lifetime", 60)
    name = "options/1"
    run("subscribe", "/options", "--session", name, "--seconds", 0)
    assert run("publish", "/options", "1", *words, "--no-persistent").exit_code == 0
    [message] = lines(run("subscribe", "/options", "--session", name, "--count", 1, "--json"))
    assert (message["priority"], message["properties"]) == (7, {"a": "1", "b": "x=y"})


def test_a_message_may_be_delivered_later(run: Run) -> None:
    name = "options/2"
    run("subscribe", "/later", "--session", name, "--seconds", 0)
    begun = time.monotonic()
    assert run("publish", "/later", "1", "--delay", 1.5).exit_code == 0
    [message] = lines(run("subscribe", "/later", "--session", name, "--count", 1, "--json"))
    assert (message["data"], time.monotonic() - begun >= 1.5) == (1, True)


def test_messages_may_have_destinations(run: Run) -> None:
    done = run("publish", "/letters", "1", "--destination", "nobody")
    assert (done.exit_code, "404:user.ptp.unknownDestination" in done.stderr) == (1, True)
    done = run("publish", "/letters", "1", "--destination", "nobody", "--force-queuing")
    assert done.exit_code == 0
    waiting = ("subscribe", "/other", "--session", "nobody/1", "--count", 1, "--json")
    [message] = lines(run(*waiting, "--seconds", 60))
    assert (message["channel"], message["data"]) == ("/letters", 1)


def test_further_options_of_a_publish_are_passed_on(run: Run) -> None:
    for _ in range(2):
        run("publish", "/kept/further", "same", "--qos", '{"forceUpdate": false}')
    assert kept(run, "/kept/further") == ["same"]


def test_refusals_are_printed_and_make_the_command_fail(run: Run) -> None:
    done = run("publish", "/sys/x", "1", "--count", 12, "--json")
    assert done.exit_code == 1
    told = lines(done)
    assert [each["n"] for each in told] == [*range(1, 13)]
    assert all("publish_denied" in each["error"] for each in told)
    assert "message 10: " in done.stderr
    assert "message 11: " not in done.stderr
    assert "more messages were refused" in done.stderr
    assert "12 refused" in done.stderr


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("x", "--size", "3"), "give only one of"),
        (("x", "--lines"), "--lines needs --file"),
        (("x", "--force-queuing"), "--force-queuing needs --destination"),
        (("x", "--property", "a"), "write NAME=VALUE"),
        (("x", "--qos", "{"), "--qos is not JSON"),
        (("x", "--qos", "[]"), "write an object"),
        (("x", "--user", "a", "--token-file", "b"), "not both"),
        (("x", "--user", "a"), "HOLDFAST_PASSWORD"),
    ],
)
def test_options_that_make_no_sense_are_usage_errors(
    run: Run, words: tuple[str, ...], complaint: str
) -> None:
    done = run("publish", "/a", *words)
    assert (done.exit_code, complaint in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        ("403::handshake_denied", "the user, the password or the token is missing or wrong"),
        ("403:no_login:handshake_denied", "this server has no login"),
        ("403:denied_by_security_policy:session_name_denied", "a --session begins with the name"),
        ("403:denied_by_rights:publish_denied", "log in with --token-file or --user"),
        ("503:communication.noConnection:store_unavailable", "try again later"),
        ("400:user.publish,delay:delivery_invalid", "the server does not know this option, or"),
    ],
)
def test_a_refusal_says_what_to_do(error: str, advice: str) -> None:
    text = refusal(ReplyError({"channel": "/meta/handshake", "error": error}))
    assert text.startswith(f"/meta/handshake: {error}: {advice}")


def test_a_token_that_has_ended_is_named(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "token"
    for lifetime_s, is_said in ((-3600, True), (3600, False)):
        file.write_text(token(exp=int(time.time()) + lifetime_s))
        done = run("publish", "/a", "1", "--token-file", file)
        assert done.exit_code == 4
        assert (f"the token in {file} ended at " in done.stderr) == is_said


@pytest.mark.parametrize("rate", [1000, 1_000_000])
def test_an_interruption_ends_the_command_after_the_outstanding_replies(
    run: Run, monkeypatch: pytest.MonkeyPatch, rate: int
) -> None:
    def parsed(text: str) -> str:
        if text == "50":
            signal.raise_signal(signal.SIGINT)
        return text

    monkeypatch.setattr(publish, "parsed", parsed)
    channel = f"/kept/interrupted/{rate}"
    done = run("publish", channel, "${counter}", "--count", 0, "--rate", rate)
    published = kept(run, channel)
    assert len(done.stdout.splitlines()) == len(published) >= 50
    assert (done.exit_code, "Published" in done.stderr) == (0, True)


def test_an_interruption_before_the_last_message_is_a_failure(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publish, "parsed", lambda _: signal.raise_signal(signal.SIGTERM))
    assert run("publish", "/a", "--count", 1000, "--rate", 1000).exit_code == 1


def test_the_end_of_the_session_is_reported_once(
    run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def publish(*_: object, **options: object) -> PublishReply:
        raise SessionEnded("402")

    monkeypatch.setattr(Client, "publish", publish)
    done = run("publish", "/a", "1", "--count", 0)
    assert done.exit_code == 1
    assert done.stderr.count("the server has ended the session (402)") == 1
    gc.collect()
    assert caplog.messages == []


@pytest.mark.parametrize("command", [("publish", "/a", "1"), ("request", "/a", "1"), ("bench",)])
def test_the_command_fails_at_the_first_attempt_if_no_server_is_there(
    run: Run, monkeypatch: pytest.MonkeyPatch, command: Sequence[str]
) -> None:
    # Later attempts would hang.
    monkeypatch.setattr("holdfast.client.pacing._FIRST_LIMIT_S", 1e9)
    monkeypatch.setattr("holdfast.cli.clients._CONNECT_TIMEOUT_S", 1e9)
    done = run(*command, HOLDFAST_URL="http://127.0.0.1:1")
    assert done.exit_code == 3
    told = (
        "holdfast: http://127.0.0.1:1 cannot be reached (Connection refused). Is a server running"
    )
    assert done.stderr.startswith(told)
    assert "Start one with holdfast serve" in done.stderr


@pytest.mark.parametrize("command", [("publish", "/meta/x", "1"), ("subscribe", "/meta/**")])
def test_the_command_refuses_meta_channels_with_the_reason_and_does_not_advise_to_log_in(
    run: Run, command: Sequence[str]
) -> None:
    done = run(*command)
    assert done.exit_code == 2
    assert "clients can neither publish nor subscribe to meta channels" in done.stderr
    assert "log in" not in done.stderr


def test_an_invalid_address_is_a_usage_error(run: Run) -> None:
    assert run("publish", "/a", "1", HOLDFAST_URL="nonsense").exit_code == 2


def test_the_address_for_clients_may_differ_from_that_of_the_administration(
    run: Run, server: Server
) -> None:
    # In a container, `HOLDFAST_URL` is the address of the administration.
    elsewhere = {"HOLDFAST_URL": "http://127.0.0.1:1", "HOLDFAST_CLIENT_URL": server.url}
    assert run("publish", "/a", "1", **elsewhere).exit_code == 0


def test_system_channels_need_a_token(run: Run, tmp_path: Path) -> None:
    done = run("publish", "/sys/x", "1", HOLDFAST_DATA=str(tmp_path))
    assert (done.exit_code, "admin-token" in done.stderr) == (2, True)
