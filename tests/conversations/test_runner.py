"""The runner itself: a story must fail when the wire says anything else."""

import pytest

from tests.conversations.runner.matching import Mismatch, Names, expect, expect_text, spoken
from tests.conversations.runner.notation import (
    JSON,
    Absent,
    Fields,
    Hole,
    NotationError,
    parse_value,
)
from tests.conversations.runner.reading import read_message, read_stories
from tests.conversations.runner.stories import Body, Hear, On, Pass, RequestLine, Say


@pytest.mark.parametrize(
    ("written", "actual"),
    [
        ('{"a": 1}', {"a": 1}),
        ('{"a": 1, ...}', {"a": 1, "b": 2}),
        ('["a", ...]', ["a", "b"]),
        ('{"a": absent}', {}),
        ('{"a": absent, ...}', {"b": 1}),
        ('{"a": <any>}', {"a": None}),
        ("<integer>", 3),
        ("<0 to 5000>", 5000),
        ("<text like [0-9a-f]+>", "00ff"),
        ("<text of 3 characters>", "xxx"),
        ('"Ελλάδα"', "Ελλάδα"),
        ("{}", {}),
    ],
)
def test_a_value_matches_what_it_describes(written: str, actual: JSON) -> None:
    expect(parse_value(written), actual, {})


@pytest.mark.parametrize(
    ("written", "actual", "complaint"),
    [
        ('{"a": 1}', {"a": 1, "b": 2}, ".b: expected no such field, got 2"),
        ('{"a": {"b": 1}}', {"a": {}}, ".a.b: expected 1, got nothing"),
        ('{"a": absent, ...}', {"a": 1}, ".a: expected no such field, got 1"),
        ("1", True, "it: expected 1, got true"),
        ("1", 1.0, "it: expected 1, got 1.0"),
        ("1", "1", 'it: expected 1, got "1"'),
        ("<integer>", True, "it: expected <integer>, got true"),
        ("<0 to 5>", 6, "it: expected <0 to 5>, got 6"),
        ("<text>", None, "it: expected <text>, got null"),
        ('["a"]', ["a", "b"], 'it: expected 1 elements, got ["a", "b"]'),
        ('["a"]', {}, "it: expected an array, got {}"),
        ("{}", [], "it: expected an object, got []"),
    ],
)
def test_a_mismatch_names_the_place(written: str, actual: JSON, complaint: str) -> None:
    with pytest.raises(Mismatch) as mismatch:
        expect(parse_value(written), actual, {})
    assert str(mismatch.value) == complaint


def test_names_are_learned_and_then_compared() -> None:
    names: Names = {}
    expect(parse_value('{"clientId": new $alice}'), {"clientId": "1f"}, names)
    expect(parse_value("$alice"), "1f", names)
    assert spoken(parse_value('{"clientId": $alice}'), names) == {"clientId": "1f"}
    with pytest.raises(Mismatch):
        expect(parse_value("$alice"), "2f", names)
    with pytest.raises(NotationError):
        expect(parse_value("$bob"), "1f", names)


def test_text_has_holes_and_names() -> None:
    names: Names = {"alice": "1f"}
    expect_text("BAYEUX=<new $cookie>; Path=<text>; of $alice", "BAYEUX=x.y; Path=/; of 1f", names)
    assert names["cookie"] == "x.y"
    expect_text("<text like [a-z]+>!", "abc!", names)
    with pytest.raises(Mismatch):
        expect_text("a.c", "abc", names)


def test_what_can_only_be_heard_cannot_be_said() -> None:
    for written in ("<any>", "{...}", "new $name"):
        with pytest.raises(NotationError):
            spoken(parse_value(written), {})
    assert spoken(parse_value('{"a": absent, "b": <text of 2 characters>}'), {}) == {"b": "xx"}


@pytest.mark.parametrize("written", ['{"a"}', "{", "[1 2]", "1 2", "{...,}", "nonsense", '{"a": }'])
def test_bad_notation_is_refused(written: str) -> None:
    with pytest.raises(NotationError):
        parse_value(written)


def test_messages_are_written_short_or_in_full() -> None:
    reply = read_message('/meta/subscribe error "403::subscribe_failed" {"ext": <any>}')
    assert (reply.channel, reply.verdict) == ("/meta/subscribe", False)
    assert reply.error == "403::subscribe_failed"
    assert reply.fields == Fields({"ext": Hole("any")}, is_open=False)
    event = read_message('/news {"data": "ok"}')
    assert (event.channel, event.verdict) == ("/news", None)
    in_full = read_message('{"channel": absent}')
    assert (in_full.channel, in_full.fields.members) == (None, {"channel": Absent()})


CHAPTER = """\
-- A remark.
transports: long-polling
! timeout = 300

# First
pins: 1, 2
! interval = 10
alice handshakes
alice -> PUT /cometd/x
    Content-Type: text/plain
    body: [{
alice <- 400
    Allow: absent
20 ms pass
on long-polling, websocket:
    bob ~> /meta/connect {"advice":
        {"timeout": 0}}
    bob <~ frame /news {"data": 1}
           /meta/connect ok

# Second
transports: websocket
alice drops
"""


def test_a_chapter_is_read_into_stories() -> None:
    first, second = read_stories(CHAPTER)
    assert first.title == "First"
    assert first.pins == {"1", "2"}
    assert first.settings == {"timeout": 300, "interval": 10}
    assert (second.transports, second.settings) == (("websocket",), {"timeout": 300})
    hello, welcome, put, answer, pause, on = first.steps
    assert isinstance(hello, Say)
    assert isinstance(welcome, Hear)
    assert isinstance(put, Say)
    assert put.request == RequestLine("PUT", "/cometd/x")
    assert put.headers == (("Content-Type", "text/plain"),)
    assert put.content == Body("[{")
    assert isinstance(answer, Hear)
    assert (answer.outcome, answer.headers) == ("400", (("Allow", "absent"),))
    assert isinstance(pause, Pass)
    assert isinstance(on, On)
    held, released = on.steps
    assert isinstance(held, Say)
    assert held.is_held
    assert isinstance(released, Hear)
    assert released.outcome == "frame"
    assert isinstance(released.content, tuple)
    assert len(released.content) == 2


def test_a_message_can_be_said_or_heard_many_times() -> None:
    text = "transports: websocket\n# T\nbob -> 3 times /a\n       /b\nbob <- 100 times /a ok\n"
    said, heard = read_stories(text)[0].steps
    assert isinstance(said, Say)
    assert said.content == (*[read_message("/a")] * 3, read_message("/b"))
    assert isinstance(heard, Hear)
    assert (heard.outcome, heard.content) == ("", (read_message("/a ok"),) * 100)


def test_an_abbreviation_may_stand_for_an_answer_of_several_messages() -> None:
    text = 'transports: websocket\n# T\nolga asks "client/joe/?sessions" and hears "joe"\n'
    said, heard = read_stories(text)[0].steps
    assert isinstance(said, Say)
    question = '/service/admin {"data": {"cmd": "client/joe/?sessions"}}'
    assert said.content == (read_message(question),)
    assert isinstance(heard, Hear)
    assert isinstance(heard.content, tuple)
    assert len(heard.content) == 2


@pytest.mark.parametrize(
    "chapter",
    [
        "# No transports\nalice drops\n",
        "transports: long-polling\n# No steps\n",
        "transports: carrier-pigeon\n",
        "transports: long-polling\n# T\nalice does something odd\n",
        'transports: long-polling\n# T\nalice -> /meta/connect {"a":\n',
        "transports: long-polling\n# T\nalice drops\n    /indented\n",
        "transports: long-polling\n# T\nalice connects\n    /indented\n",
        "transports: long-polling\n# T\nalice -> /a\n    body: x\n",
    ],
)
def test_a_chapter_that_cannot_be_read_is_refused(chapter: str) -> None:
    with pytest.raises(NotationError):
        read_stories(chapter)
