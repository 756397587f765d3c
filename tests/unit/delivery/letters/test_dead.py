"""Dead letters: their content, their events, their fingerprints."""

import re

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.delivery.basics.error_codes import UPDATE_ERROR, said_of
from holdfast.delivery.letters.dead import (
    MAX_REASON,
    DeadLetter,
    LetterState,
    fingerprint,
    key_of,
    pattern_of,
    subject_of,
)
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.trails import Attempt

MESSAGE_ID = 1_763_000_000_000_000_001


def message(data: object = "hello") -> Message:
    wire = orjson.dumps({"channel": "/orders/new", "data": data})
    message = Message(wire, id=MESSAGE_ID, channel="/orders/new", sender="client/ann/2")
    message.priority = 7
    message.properties = {"shop": "north"}
    message.generation = 1
    return message


def letter(reason: str = "no such order 17") -> DeadLetter:
    return DeadLetter.of(
        message(),
        id="1763000000000000999",
        receiver="client/joe/1",
        code="user.update.illegalArgument",
        reason=reason,
        attempts=(Attempt(n=1, time=1001, outcome="refused"),),
        policy={"retries": 0},
    )


def test_a_letter_knows_its_message_its_publisher_and_its_receiver() -> None:
    found = letter()
    assert (found.message, found.channel, found.priority) == (MESSAGE_ID, "/orders/new", 7)
    assert found.publisher == "client/ann/2"
    assert (found.receiver, found.key, found.subject) == ("client/joe/1", "joe/1", "joe")
    assert (found.state, found.replays, found.generation) == (LetterState.NEW, 0, 1)


@pytest.mark.parametrize("is_forced", [False, True])
def test_a_letter_has_the_lifetime_of_its_message(is_forced: bool) -> None:
    mortal = message()
    assert "expiration" not in letter().envelope()["qos"]
    mortal.limit_life(2500, is_forced=is_forced)
    found = DeadLetter.of(mortal, id="1763000000000000999", receiver="joe/1", code="c", reason="")
    said = {"lifeTime": 2500, "forceDestroy": is_forced}
    assert found.expiration == found.envelope()["qos"]["expiration"] == said


def test_a_letter_keeps_the_bytes_of_the_event() -> None:
    assert (letter().wire, letter().size) == (message().wire, len(message().wire))


def test_a_long_reason_is_cut() -> None:
    assert len(letter("x" * 5000).reason) == MAX_REASON


def test_a_long_reason_is_cut_by_its_length_in_json() -> None:
    reason = letter("\U0001f600\x01" * 5000).reason
    assert MAX_REASON - 10 < len(orjson.dumps(reason)) - 2 <= MAX_REASON
    assert letter(reason).reason == reason


# The event


def test_the_data_of_an_event_has_everything_about_the_letter() -> None:
    event = letter().event()
    assert event["channel"] == "/sys/deadMessage"
    data = event["data"]
    assert data["content"] == "hello"
    assert data["channel"] == "/orders/new"
    assert data["key"] == {"oid": "/orders/new"}
    assert data["qos"]["sender"] == "client/ann/2"
    assert data["errorCode"] == "user.update.illegalArgument"
    assert data["reason"] == "no such order 17"
    assert data["receiver"] == "client/joe/1"
    assert data["rcvTimestamp"] == str(MESSAGE_ID)
    assert data["attempts"][0]["outcome"] == "refused"
    assert data["fingerprint"] == letter().fingerprint


def test_the_properties_of_an_event_have_the_names_of_xmlblaster() -> None:
    properties = letter().event()["ext"]["delivery"]["properties"]
    assert properties["__oid"] == "/orders/new"
    assert properties["__rcvTimestamp"] == str(MESSAGE_ID)
    assert properties["__deadMessageReason"] == "no such order 17"
    assert properties["__receiver"] == "client/joe/1"
    assert properties["__errorCode"] == "user.update.illegalArgument"
    assert orjson.loads(properties["__key"]) == {"oid": "/orders/new"}
    assert orjson.loads(properties["__qos"])["priority"] == 7


def test_an_event_can_be_written_as_json() -> None:
    assert orjson.loads(orjson.dumps(letter().event())) == letter().event()


# Names


@pytest.mark.parametrize(
    ("name", "key", "subject"),
    [
        ("client/joe/1", "joe/1", "joe"),
        ("/node/eu/client/joe/-17", "joe/-17", "joe"),
        ("client/a/b/1", "a/b/1", "a/b"),
        ("", "", ""),
    ],
)
def test_an_absolute_session_name_contains_the_key_and_the_subject(
    name: str, key: str, subject: str
) -> None:
    assert (key_of(name), subject_of(name)) == (key, subject)


# Fingerprints


def test_letters_of_replies_to_different_requests_have_the_same_fingerprint() -> None:
    one, other = (fingerprint(f"/ret/{id}/4000001", "communication.lateReply") for id in "ab")
    assert one == other
    assert one != fingerprint("/return", "communication.lateReply")


@pytest.mark.parametrize(
    ("channel", "pattern"),
    [
        ("/orders/17/paid", "/orders/*/paid"),
        ("/orders/a7f3/paid", "/orders/*/paid"),
        ("/news", "/news"),
        ("/ret/someone", "/ret/*"),
    ],
)
def test_channels_that_differ_in_a_number_have_one_pattern(channel: str, pattern: str) -> None:
    assert pattern_of(channel) == pattern


def test_a_letter_says_what_its_receiver_said_without_the_meaning_of_the_code() -> None:
    code = UPDATE_ERROR
    assert said_of(code.text, code.explained("the disk is full")) == "the disk is full"
    assert said_of(code.text, code.explained("")) == ""
    assert said_of("no code", "the disk is full") == "the disk is full"


def test_letters_of_one_channel_and_code_have_the_same_fingerprint() -> None:
    assert letter("no such order 17").fingerprint == letter("out of paper").fingerprint


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("/a", "user"), ("/b", "user")),
        (("/a", "user"), ("/a", "user.update")),
        (("/a", "auser"), ("/aa", "user")),
    ],
)
def test_different_channels_or_codes_have_different_fingerprints(
    one: tuple[str, str], other: tuple[str, str]
) -> None:
    assert fingerprint(*one) != fingerprint(*other)


@given(st.text(max_size=1100), st.text(max_size=200))
def test_a_fingerprint_is_sixteen_hexadecimal_digits(channel: str, code: str) -> None:
    assert re.fullmatch("[0-9a-f]{16}", fingerprint(channel, code))
