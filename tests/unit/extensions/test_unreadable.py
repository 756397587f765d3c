"""Acks and verdicts that cannot be read: they have no effect, and settle nothing."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.extensions.timesync import TimeSync
from tests.unit.bayeux.harness import Json, server_of
from tests.unit.extensions.delivering import connect, publish, receiver

SERVICE = "/service/delivery"
REFUSAL = {"seq": 1, "errorCode": "user.update.error"}


def message_on(channel: str, ext: Json) -> Json:
    """A message that would have an effect of its own."""
    fields: dict[str, Json] = {
        "/meta/connect": {"connectionType": "long-polling", "advice": {"timeout": 0}},
        "/meta/subscribe": {"subscription": "/b"},
        "/meta/unsubscribe": {"subscription": "/a"},
        "/b": {"data": "published"},
        "/service/any": {"data": "asked"},
        SERVICE: {"data": [{"seq": 2, "state": "OK"}]},
    }
    return {"channel": channel, **fields.get(channel, {}), "ext": ext}


CHANNELS = (
    "/meta/connect",
    "/meta/subscribe",
    "/meta/unsubscribe",
    "/meta/disconnect",
    "/b",
    "/service/any",
    SERVICE,
)


class Scene:
    """A receiver with two messages in flight, batch 2, and a subscriber of what it publishes."""

    def __init__(self, **options: Any) -> None:
        self.server = server_of()
        self.client = receiver(self.server, **options)
        self.other = self.server.client()
        self.other.subscribe("/b")
        publish(self.server, 1, 2)
        assert connect(self.client).data == [1, 2]

    def send(self, message: Json) -> Json:
        """Send a message; return the reply without the events."""
        return self.client.send(message).replies[-1]

    def nothing_happened(self) -> bool:
        session, counters = self.client.session, self.server.bayeux.state.hub.counters
        return (
            not session.has_left
            and session.queue.count == 2
            and not session.queue.has_pending
            and session.subscriptions == {"/a"}
            and counters.settled() == 0
            and counters.verdicts_unknown == counters.acks_out_of_range == 0
            and self.other.connect(advice={"timeout": 0}).data == []
            and self.server.balances()
        )


UNREADABLE: list[tuple[Json, str]] = [
    ({"verdicts": [{"seq": "1", "errorCode": "user.update.error"}]}, "verdicts[0].seq"),
    ({"verdicts": [{"seq": 1.5, "errorCode": "user.update.error"}]}, "verdicts[0].seq"),
    ({"verdicts": [{"errorCode": "user.update.error"}]}, "verdicts[0].seq"),
    ({"verdicts": [{"seq": 2, "state": "OK"}, {"seq": None}]}, "verdicts[1].seq"),
    ({"verdicts": [{"seq": 1, "state": "OK", "errorcode": "x"}]}, "verdicts[0].errorcode"),
    ({"verdicts": [{**REFUSAL, "delay": "soon"}]}, "verdicts[0].delay"),
    ({"verdicts": [REFUSAL, None]}, "verdicts[1]"),
    ({"verdicts": REFUSAL}, "verdicts"),
    ({"verdicts": None}, "verdicts"),
    ({"verdicts": "OK"}, "verdicts"),
    ({"pending": 1}, "pending"),
    ({"pending": ["1"]}, "pending[0]"),
    ({"pending": [1, True]}, "pending[1]"),
    ({"verdicts": [REFUSAL], "pending": {}}, "pending"),
]


@pytest.mark.slow
@pytest.mark.parametrize("channel", CHANNELS)
def test_unreadable_verdicts_and_pending_refuse_the_message_that_carries_them(channel: str) -> None:
    for said, part in UNREADABLE:
        scene = Scene()
        reply = scene.send(message_on(channel, {"ack": 2, "delivery": said}))
        assert reply["error"] == f"400:user.illegalArgument,{part}:delivery_invalid", said
        assert scene.nothing_happened(), said


@pytest.mark.parametrize("channel", CHANNELS)
def test_an_ext_delivery_that_is_no_object_refuses_its_message(channel: str) -> None:
    for asked in [True, False, "true", 7, [], [REFUSAL]]:
        scene = Scene()
        reply = scene.send(message_on(channel, {"ack": 2, "delivery": asked}))
        assert re.fullmatch(r"400:user\.\w+,delivery:delivery_invalid", reply["error"]), asked
        assert scene.nothing_happened(), asked


@pytest.mark.parametrize("verdicts", [[REFUSAL], []], ids=["a verdict", "none"])
@pytest.mark.parametrize("channel", CHANNELS)
def test_an_unknown_option_refuses_the_verdicts_beside_it(
    channel: str, verdicts: list[Json]
) -> None:
    scene = Scene()
    said = {"verdicts": verdicts, "verdict": [REFUSAL]}
    reply = scene.send(message_on(channel, {"ack": 2, "delivery": said}))
    assert re.fullmatch(r"400:user\.\w+,verdict:delivery_invalid", reply["error"])
    assert scene.nothing_happened()


@pytest.mark.parametrize(
    ("channel", "options", "error"),
    [
        ("/b", {"priority": "9"}, "user.publish,priority"),
        ("/service/any", {"key": "k"}, "user.publish,key"),
        ("/meta/subscribe", {"oneway": 1}, "user.illegalArgument,oneway"),
        ("/meta/disconnect", {"end": "yes"}, "user.illegalArgument,end"),
        ("/meta/disconnect", {"end": True, "discard": 1}, "user.illegalArgument,discard"),
        ("/meta/disconnect", {"discard": True}, "user.illegalArgument,discard"),
        ("/meta/connect", {"end": True}, "user.illegalArgument,end"),
    ],
)
def test_an_invalid_option_refuses_the_verdicts_beside_it(
    channel: str, options: Json, error: str
) -> None:
    scene = Scene()
    delivery = {"verdicts": [REFUSAL], **options}
    reply = scene.send(message_on(channel, {"ack": 2, "delivery": delivery}))
    assert reply["error"] == f"400:{error}:delivery_invalid"
    assert scene.nothing_happened()


@pytest.mark.parametrize("channel", CHANNELS)
def test_an_unreadable_ack_refuses_the_verdicts_beside_it(channel: str) -> None:
    for ack in [True, "2", 2.5, None, [2], {"batch": 2}]:
        scene = Scene()
        reply = scene.send(message_on(channel, {"ack": ack, "delivery": {"verdicts": [REFUSAL]}}))
        assert reply["error"] == "400:user.illegalArgument,ack:ext_invalid", ack
        assert scene.nothing_happened(), ack


@pytest.mark.parametrize(
    ("data", "part"),
    [
        ({"verdicts": [{**REFUSAL, "seq": "1"}]}, "verdicts[0].seq"),
        ({"verdicts": REFUSAL}, "verdicts"),
        ({"verdicts": [REFUSAL], "pending": [2]}, "pending"),
        ({"verdict": [REFUSAL]}, "verdicts[0].seq"),
        ([REFUSAL, {"seq": "2", "state": "OK"}], "verdicts[1].seq"),
        ([[REFUSAL]], "verdicts[0]"),
        ("OK", "verdicts"),
        (None, "verdicts"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("ext", [{}, {"delivery": {"verdicts": [{"seq": 2, "state": "OK"}]}}])
def test_published_verdicts_are_read_as_strictly(data: Any, part: str, ext: Json) -> None:
    scene = Scene()
    reply = scene.send({"channel": SERVICE, "data": data, "ext": ext})
    assert reply["error"] == f"400:user.illegalArgument,{part}:delivery_invalid"
    assert scene.nothing_happened()


def test_a_single_published_verdict_needs_no_list() -> None:
    scene = Scene()
    assert scene.send({"channel": SERVICE, "data": {"seq": 1.0, "state": "OK"}})["successful"]
    assert scene.client.session.queue.count == 1


def test_an_unreadable_verdict_can_be_sent_again_in_a_readable_form() -> None:
    scene = Scene()
    said = {"seq": "1", "errorCode": "user.update.error"}
    assert not connect(scene.client, said).reply["successful"]
    assert connect(scene.client, {**said, "seq": 1.0}).data == []
    assert [letter.code for letter in scene.server.keeper.letters] == ["user.update.error"]
    assert scene.server.bayeux.state.hub.counters.acked == 1


def test_a_refused_connect_does_not_supersede_a_held_one() -> None:
    scene = Scene()
    held = scene.client.connect(ext={"ack": 2})
    assert not connect(scene.client, {"seq": "1"}).reply["successful"]
    assert held.is_held
    publish(scene.server, 3)
    scene.server.turn()
    assert held.data == [3]


def test_other_messages_beside_an_unreadable_one_take_effect() -> None:
    scene = Scene()
    bad = message_on("/meta/connect", {"ack": 2, "delivery": {"verdicts": [{"seq": "1"}]}})
    good = message_on(SERVICE, {})
    replies = scene.client.send(bad, good).replies
    assert [reply["successful"] for reply in replies] == [False, True]
    assert scene.client.session.queue.count == 1


@pytest.mark.parametrize("terms", [{}, {"ext": {"ack": True}}])
def test_verdicts_in_a_session_that_did_not_agree_on_them_are_refused(terms: Json) -> None:
    server = server_of()
    client = server.client(**terms)
    error = "400:user.illegalArgument,verdicts:delivery_invalid"
    assert connect(client, ok_of(1), ack=None).reply["error"] == error
    assert client.publish(SERVICE, [ok_of(1)]).reply["error"] == error
    assert connect(client, ack=None).reply["successful"]


def ok_of(seq: int) -> Json:
    return {"seq": seq, "state": "OK"}


def test_verdicts_at_a_handshake_are_read_and_settle_nothing() -> None:
    server = server_of()
    said: Json = {"verdicts": [ok_of(1), ok_of(2)], "pending": [3]}
    assert server.guest().handshake(ext={"delivery": said}).reply["successful"]
    assert server.bayeux.state.hub.counters.verdicts_unknown == 2
    said = {"verdicts": [{"seq": "1"}]}
    reply = server.guest().handshake(ext={"delivery": said}).reply
    assert reply["error"] == "400:user.illegalArgument,verdicts[0].seq:delivery_invalid"
    assert reply["advice"]["reconnect"] == "none"


@pytest.mark.slow
def test_a_message_may_have_ten_thousand_verdicts_and_no_more() -> None:
    scene = Scene()
    verdicts = [ok_of(1)] * 10_001
    error = "400:user.illegalArgument,verdicts:delivery_invalid"
    assert connect(scene.client, *verdicts).reply["error"] == error
    assert scene.nothing_happened()
    asked = connect(scene.client, *verdicts[1:])
    scene.server.turn()
    assert asked.reply["successful"]


# Any ext

SCALAR = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(allow_nan=False, allow_infinity=False)
)
JSON = st.recursive(
    SCALAR | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)
VERDICT = st.dictionaries(
    st.sampled_from(["seq", "state", "errorCode", "message", "delay"]),
    SCALAR | st.sampled_from(["OK", "1", "user.update.error", "user.update.holdback"]),
)
EXT = st.fixed_dictionaries(
    {},
    optional={
        "ack": SCALAR | JSON,
        "timesync": JSON | st.dictionaries(st.sampled_from(["tc", "l", "o"]), SCALAR),
        "delivery": JSON
        | st.fixed_dictionaries(
            {},
            optional={
                "verdicts": JSON | VERDICT | st.lists(VERDICT, max_size=3),
                "pending": JSON | st.lists(SCALAR, max_size=3),
                "end": SCALAR,
                "priority": SCALAR,
                "oneway": SCALAR,
                "retries": SCALAR,
            },
        ),
    },
)


def is_number(value: object) -> bool:
    return type(value) in (int, float) and value == round(value)  # type: ignore[call-overload]


def is_verdict(said: Any) -> bool:
    delay, text = said.get("delay"), said.get("message")
    return (
        is_number(said.get("seq"))
        and (text is None or isinstance(text, str))
        and (delay is None or (type(delay) in (int, float) and delay >= 0))
    )


def is_readable(ext: Json) -> bool:
    said = ext.get("delivery") or {}
    verdicts, pending = said.get("verdicts", []), said.get("pending", [])
    return (
        isinstance(said, dict)
        and is_number(ext.get("ack", 0))
        and isinstance(ext.get("timesync", {}), dict)
        and isinstance(verdicts, list)
        and all(isinstance(each, dict) and is_verdict(each) for each in verdicts)
        and isinstance(pending, list)
        and all(map(is_number, pending))
    )


NAMED = re.compile(r"400:user\.(illegalArgument|publish),[\w.\[\]-]+:(delivery|ext)_invalid")


@pytest.mark.slow
@given(st.sampled_from(CHANNELS), EXT)
def test_an_ext_is_read_or_else_refused_by_name_and_without_effect(channel: str, ext: Json) -> None:
    scene = Scene()
    scene.server.bayeux.state.installed.extend(TimeSync(lambda: 1_000_000))
    reply = scene.send(message_on(channel, ext))
    if reply["successful"]:
        assert is_readable(ext)
    else:
        assert NAMED.fullmatch(reply["error"]), reply["error"]
        assert scene.nothing_happened()
    assert scene.server.balances()


@pytest.mark.slow
@given(EXT)
def test_the_ext_of_a_handshake_is_agreed_on_or_refused_by_name(ext: Json) -> None:
    server = server_of()
    server.bayeux.state.installed.extend(TimeSync(lambda: 1_000_000))
    reply = server.guest().handshake(ext=ext).elements[0]
    if not reply["successful"]:
        assert NAMED.fullmatch(reply["error"]), reply["error"]
        assert len(server.bayeux.state.sessions) == 0
