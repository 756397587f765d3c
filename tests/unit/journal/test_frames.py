"""Frames are read as they were written, and anything else is one clear error."""

import zlib
from collections.abc import Callable

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.delivery.messages.message import Message
from holdfast.journal.builder import FrameBuilder
from holdfast.journal.columns import DecodedNote
from holdfast.journal.frame import FrameUnreadable, decode, decode_head
from holdfast.journal.schema import VERSION, Event, Kind
from holdfast.journal.unfold import unfold

NOW = 1_763_600_000_000_000
KINDS = (Kind.HANDED, Kind.ACKED, Kind.WRITTEN, Kind.REDELIVERED)
CHANNELS = ("/chat/demo", "/orders/ü", "/a")
RECEIVERS = ("ann/1", "joe/-17", "anonymous/-3")


def message(n: int, channel: str = "/chat/demo", sender: str = "client/joe/1") -> Message:
    return Message(b"x" * 100, id=(NOW + n) * 1000 + n, channel=channel, sender=sender)


MESSAGES = [message(n, CHANNELS[n % 3], "" if n % 2 else "client/joe/1") for n in range(6)]


def of(message: Message, kind: str, after: int) -> Event:
    return Event("here", NOW + after, kind, msg=message.id, origin="here", channel=message.channel)


def events_of(builder: FrameBuilder) -> list[Event]:
    return unfold(decode(builder.frame()))


def test_a_publish_has_its_copies_its_size_and_its_sender() -> None:
    builder = FrameBuilder("here")
    builder.published(MESSAGES[0], copies=3, kept=2)
    builder.published(MESSAGES[1], copies=0)
    first = of(MESSAGES[0], "published", 0)._replace(copies=3, kept=2, size=100, priority=5)
    second = of(MESSAGES[1], "published", 1)._replace(copies=0, kept=0, size=100, priority=5)
    assert events_of(builder) == [first._replace(sender="joe/1"), second]


def test_ids_begin_with_the_origin_of_a_frame_or_the_node_of_an_older_one() -> None:
    for builder, origin in ((FrameBuilder("here", "shop"), "shop"), (FrameBuilder("here"), "here")):
        builder.published(MESSAGES[0], copies=1)
        builder.delivered(Kind.HANDED, [MESSAGES[1]], "joe/1", NOW + 2, 1)
        assert [(each.node, each.origin) for each in events_of(builder)] == [("here", origin)] * 2


def test_a_frame_whose_origin_is_no_name_is_unreadable() -> None:
    builder = FrameBuilder("here", "shop")
    builder.published(MESSAGES[0], copies=1)
    with pytest.raises(FrameUnreadable, match="origin"):
        decode(builder.frame().replace(b'"origin":"shop"', b'"origin":1234'))


def test_each_publish_has_its_own_priority() -> None:
    builder = FrameBuilder("here")
    urgent = message(7)
    urgent.priority = 9
    for each in (MESSAGES[0], urgent, MESSAGES[1]):
        builder.published(each, copies=1)
    assert [event.priority for event in events_of(builder)] == [5, 9, 5]


def test_many_receivers_of_the_same_messages_are_one_row_with_a_time_for_each() -> None:
    builder = FrameBuilder("here")
    for after, receiver in enumerate(RECEIVERS):
        builder.delivered(Kind.HANDED, list(MESSAGES[:2]), receiver, NOW + after, 1)
    frame = decode(builder.frame())
    assert frame.body["delivered"]["messages"] == [[0, 1]]
    assert frame.head.n == 6
    assert unfold(frame) == [
        of(message, "handed", after)._replace(receiver=receiver, attempt=1)
        for message in MESSAGES[:2]
        for after, receiver in enumerate(RECEIVERS)
    ]


def test_discards_of_one_message_for_one_reason_share_a_row() -> None:
    builder = FrameBuilder("here")
    for code in ("queue_full", "client.gone"):
        for receiver in RECEIVERS:
            builder.explained(Kind.DISCARDED, MESSAGES[0], receiver, NOW, code=code)
    assert builder.columns.weight == 2
    frame = decode(builder.frame())
    assert frame.body["delivered"]["t"] == [0, 0]
    assert unfold(frame) == [
        of(MESSAGES[0], "discarded", 0)._replace(receiver=receiver, code=code)
        for code in ("queue_full", "client.gone")
        for receiver in RECEIVERS
    ]


def test_an_event_with_a_code_does_not_share_it_with_others() -> None:
    builder = FrameBuilder("here")
    builder.happened(Kind.DEAD, [MESSAGES[0].id], "ann/1", NOW)
    builder.explained(Kind.DEAD, MESSAGES[0], "joe/1", NOW, code="user.x")
    builder.happened(Kind.DEAD, [MESSAGES[0].id], "eve/1", NOW)
    assert [(event.receiver, event.code) for event in events_of(builder)] == [
        ("ann/1", None),
        ("joe/1", "user.x"),
        ("eve/1", None),
    ]


def test_a_message_known_only_by_its_id_has_no_channel() -> None:
    builder = FrameBuilder("here")
    builder.happened(Kind.ACKED, [MESSAGES[0].id], "ann/1", NOW)
    assert events_of(builder) == [
        of(MESSAGES[0], "acked", 0)._replace(channel=None, receiver="ann/1")
    ]


def note(kind: str) -> DecodedNote:
    """What a note tells of the first message."""
    return [], [(kind, [MESSAGES[0].id], 1, None, ["joe/1"], [NOW])]


@pytest.mark.parametrize(
    "tell",
    [
        [
            lambda to: to.published(MESSAGES[0], copies=1),
            lambda to: to.explained(Kind.REFUSED, MESSAGES[0], "ann/1", NOW, code="user.x"),
            lambda to: to.happened(Kind.DEAD, [MESSAGES[0].id], "ann/1", NOW),
            lambda to: to.delivered(Kind.RETURNED, [MESSAGES[0]], "ann/1", NOW),
        ],
        [
            lambda to: to.published(MESSAGES[0], copies=1),
            lambda to: to.add_note(note(Kind.HANDED)),
            lambda to: to.add_note(note(Kind.ACKED)),
        ],
        [
            lambda to: to.add_note(note(Kind.HANDED)),
            lambda to: to.take_in(),
            lambda to: to.published(MESSAGES[0], copies=1),
            lambda to: to.add_note(note(Kind.DEAD)),
        ],
    ],
)
def test_each_frame_names_a_message_once_and_with_its_channel(
    tell: list[Callable[[FrameBuilder], None]],
) -> None:
    for builder in (FrameBuilder("here"), FrameBuilder("there")):
        # A second frame knows nothing of the first.
        for _ in range(2):
            for each in tell:
                each(builder)
            frame = decode(builder.frame())
            assert len(frame.body["messages"]["id"]) == 1
            assert {event.channel for event in unfold(frame)} == {MESSAGES[0].channel}


def test_a_message_known_by_its_id_first_gets_the_channel_of_a_later_event() -> None:
    builder = FrameBuilder("here")
    builder.happened(Kind.ACKED, [each.id for each in MESSAGES[:2]], "ann/1", NOW)
    builder.delivered(Kind.ACKED, MESSAGES[1:3], "joe/-17", NOW)
    assert [event.channel for event in events_of(builder)] == [
        None,
        MESSAGES[1].channel,
        MESSAGES[1].channel,
        MESSAGES[2].channel,
    ]


def test_a_failure_has_its_code_and_its_letter() -> None:
    builder = FrameBuilder("here")
    builder.explained(
        Kind.DEAD, MESSAGES[0], "ann/1", NOW, 2, code="user.x", letter=NOW, fingerprint="ab"
    )
    builder.explained(Kind.REPLAYED, MESSAGES[0], "ann/1", NOW + 9, letter=NOW, generation=1)
    event = of(MESSAGES[0], "dead", 0)._replace(receiver="ann/1", letter=NOW)
    assert events_of(builder) == [
        event._replace(attempt=2, code="user.x", fingerprint="ab"),
        event._replace(kind="replayed", ts=NOW + 9, generation=1),
    ]


def test_changes_name_their_channel_or_session() -> None:
    builder = FrameBuilder("here")
    builder.changed(Kind.NODE, NOW, "start")
    builder.changed(Kind.HELD, NOW + 5, "guard", channel="/a")
    builder.changed(Kind.SESSION, NOW + 6, "ended", name="ann/1", number=3)
    assert events_of(builder) == [
        Event("here", NOW, "node", what="start"),
        Event("here", NOW + 5, "held", channel="/a", what="guard"),
        Event("here", NOW + 6, "session", receiver="ann/1", what="ended", number=3),
    ]


def test_a_builder_is_empty_after_each_frame() -> None:
    builder = FrameBuilder("here")
    builder.changed(Kind.NODE, NOW, "start")
    assert len(events_of(builder)) == 1
    assert builder.frame() == b""
    builder.changed(Kind.NODE, NOW, "stop")
    assert [event.what for event in events_of(builder)] == ["stop"]


def test_times_in_a_frame_may_go_back() -> None:
    builder = FrameBuilder("here")
    builder.changed(Kind.NODE, NOW, "start")
    builder.changed(Kind.NODE, NOW - 1_000_000, "stop")
    frame = decode(builder.frame())
    assert (frame.head.t0, frame.head.t1) == (NOW - 1_000_000, NOW)
    assert [event.ts for event in unfold(frame)] == [NOW, NOW - 1_000_000]


def test_a_publish_with_an_id_later_than_its_frame_has_the_time_of_the_frame() -> None:
    builder = FrameBuilder("here")
    builder.changed(Kind.NODE, NOW - 5, "start")
    builder.published(MESSAGES[0], copies=1)
    builder.published(MESSAGES[5], copies=1)
    times = [event.ts for event in unfold(decode(builder.frame(NOW + 3)))]
    assert times == [NOW, NOW + 3, NOW - 5]


happenings = st.tuples(
    st.sampled_from(KINDS),
    st.lists(st.sampled_from(MESSAGES), min_size=1, max_size=4, unique=True),
    st.sampled_from(RECEIVERS),
    st.integers(-1_000_000, 1_000_000),
    st.none() | st.integers(1, 3),
)


@pytest.mark.slow
@given(st.lists(happenings, min_size=1, max_size=30))
def test_every_event_put_into_a_frame_is_read_from_it(
    told_before: list[tuple[str, list[Message], str, int, int | None]],
) -> None:
    builder = FrameBuilder("here")
    expected = []
    for kind, messages, receiver, after, attempt in told_before:
        builder.delivered(kind, messages, receiver, NOW + after, attempt)
        expected += [
            of(each, kind, after)._replace(receiver=receiver, attempt=attempt) for each in messages
        ]
    assert builder.count == len(expected)
    found = events_of(builder)
    assert sorted(found, key=repr) == sorted(expected, key=repr)


# Unreadable frames


def whole(n: int = 200) -> bytes:
    builder = FrameBuilder("here")
    for i in range(n):
        builder.published(message(i), copies=1)
    return builder.frame()


@pytest.mark.parametrize("n", [1, 200])
def test_a_truncated_frame_is_unreadable_wherever_it_ends(n: int) -> None:
    frame = whole(n)
    for length in range(len(frame)):
        with pytest.raises(FrameUnreadable):
            decode(frame[:length])


@pytest.mark.parametrize(
    "alien", [b"", b"\n", b"hello\n{}", b"[1]\n{}", b'{"v":"1"}\n{}', b"\0" * 99]
)
def test_bytes_that_are_no_frame_are_unreadable(alien: bytes) -> None:
    with pytest.raises(FrameUnreadable):
        decode_head(alien)
    with pytest.raises(FrameUnreadable):
        decode(alien)


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_unreadable_and_raise_nothing_else(body: bytes) -> None:
    line = whole(1).partition(b"\n")[0]
    for bytes in (body, line + b"\n" + body, line + b"\n" + zlib.compress(body)):
        with pytest.raises(FrameUnreadable):
            decode(bytes)


def test_a_frame_of_a_newer_version_is_refused_as_such() -> None:
    head = {"v": VERSION + 1, "node": "here", "n": 0, "t0": 0, "t1": 0}
    with pytest.raises(FrameUnreadable, match="newer"):
        decode(orjson.dumps(head) + b"\n{}")


def test_a_frame_followed_by_more_bytes_is_refused() -> None:
    with pytest.raises(FrameUnreadable, match="more"):
        decode(whole() + b"x")


def test_a_frame_with_a_wrong_number_of_events_is_refused() -> None:
    with pytest.raises(FrameUnreadable, match="has 200"):
        decode(whole().replace(b'"n":200', b'"n":201', 1))


def test_columns_that_do_not_fit_together_are_refused() -> None:
    line, _, body = whole(1).partition(b"\n")
    columns = orjson.loads(body)
    columns["published"]["message"] = [7]
    with pytest.raises(FrameUnreadable, match="fit together"):
        unfold(decode(line + b"\n" + orjson.dumps(columns)))


def test_kinds_of_a_later_version_are_kept_and_its_columns_are_ignored() -> None:
    builder = FrameBuilder("here")
    builder.delivered(Kind.ACKED, MESSAGES[:1], "ann/1", NOW)
    line, _, body = builder.frame().partition(b"\n")
    columns = orjson.loads(body)
    columns["delivered"] |= {"kind": ["answered"], "deadline": [5]}
    columns["topics"] = {"name": ["x"]}
    assert [each.kind for each in unfold(decode(line + b"\n" + orjson.dumps(columns)))] == [
        "answered"
    ]


def test_a_delivery_of_no_message_is_no_event() -> None:
    builder = FrameBuilder("here")
    builder.delivered(Kind.ACKED, [], "ann/1", NOW)
    assert builder.frame() == b""
