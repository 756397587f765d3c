"""Names and types of xMsg: its topics as channels and back, and the types of values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import xmsg
from holdfast.delivery.basics.channels import Channels, covers

PARTS = st.text("aZ7E~-_!()$@./ \0é€𝄞", min_size=1, max_size=8)
TOPICS = st.lists(PARTS, min_size=1, max_size=4).map(":".join)


@pytest.mark.parametrize(
    ("topic", "channel"),
    [
        ("data", "/data"),
        ("data:power", "/data/power"),
        ("data:power:motor", "/data/power/motor"),
        # A type may have several parts.
        ("A:B:C:D", "/A/B/C/D"),
        ("ret:1a2b3c4d:1000017", "/ret/1a2b3c4d/1000017"),
        ("10.2.9.96_java:master", "/10~2E2~2E9~2E96_java/master"),
        ("a/b: c", "/a~2Fb/~20c"),
        ("a~7E", "/a~7E7E"),
        ("é", "/~C3~A9"),
    ],
)
def test_a_topic_is_turned_into_a_channel_and_back(topic: str, channel: str) -> None:
    assert xmsg.channel_of(topic) == channel
    assert xmsg.topic_of(channel) == topic


@given(TOPICS)
def test_every_topic_has_a_legal_channel_of_its_own(topic: str) -> None:
    channel = xmsg.channel_of(topic)
    parsed = Channels().get(channel)
    assert parsed is not None
    assert (parsed.name, parsed.is_wild) == (channel, False)
    assert xmsg.topic_of(channel) == topic


@pytest.mark.slow
@given(st.from_regex(r"(/[A-Za-z0-9\-_!~()$@.]{1,6}){1,3}", fullmatch=True))
def test_the_topic_of_a_channel_leads_back_to_it(channel: str) -> None:
    try:
        topic = xmsg.topic_of(channel)
    except ValueError:
        return
    assert xmsg.channel_of(topic) == channel


@given(TOPICS, TOPICS)
def test_a_subscription_matches_its_topic_and_those_below_it(one: str, other: str) -> None:
    channel, below = xmsg.patterns_of(one)
    matches = other == one or other.startswith(f"{one}:")
    found = xmsg.channel_of(other)
    assert (channel == found or covers(below, found)) is matches
    assert covers(below, xmsg.channel_of(f"{one}:{other}"))


@pytest.mark.parametrize("topic", ["", ":", "a:", ":b", "a::b", "*", "*:b", "a:*", "a:b*"])
def test_a_text_that_is_no_topic_has_no_channel(topic: str) -> None:
    with pytest.raises(ValueError, match="is not a topic of xMsg"):
        xmsg.channel_of(topic)


@pytest.mark.parametrize("channel", ["a/b", "/a/*", "/a.b", "/a~2e", "/a~3A", "/~FF", "/a/"])
def test_a_channel_that_no_topic_leads_to_has_no_topic(channel: str) -> None:
    with pytest.raises(ValueError, match="xMsg"):
        xmsg.topic_of(channel)


@pytest.mark.parametrize(
    ("data", "mime"),
    [
        ("", "text/string"),
        (1000, "binary/sfixed32"),
        (-(2**31), "binary/sfixed32"),
        (2**31, "binary/sfixed64"),
        (2**63, "application/json"),
        (0.5, "binary/double"),
        (True, "application/json"),
        (None, "application/json"),
        ({"volt": 230}, "application/json"),
        ([1, 2], "binary/array-sfixed32"),
        ([1, 2**40], "binary/array-sfixed64"),
        ([0.5, 1.5], "binary/array-double"),
        (["a", "b"], "binary/array-string"),
        ([1, "b"], "application/json"),
        ([True], "application/json"),
        ([], "application/json"),
    ],
)
def test_a_value_has_the_type_that_xmsg_gives_it(data: object, mime: str) -> None:
    assert xmsg.mime_of(data) == mime
