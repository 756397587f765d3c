"""Channel names: which are legal, what matches what."""

from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.delivery.basics import channels as module
from holdfast.delivery.basics.channels import (
    Channel,
    Channels,
    Kind,
    covers,
    lookups,
    overlaps,
)


def channel(name: str) -> Channel:
    found = Channels().get(name)
    assert found is not None
    return found


@pytest.mark.parametrize(
    "name",
    [
        "/a",
        "/foo/bar",
        "/a b",
        "/!#$()*+-./@_{~}",
        "/0123456789",
        "/foo/{id}",
        "/foo*",
        "/*foo/bar",
        "/foo/***",
        "/meta/anything",
    ],
)
def test_a_name_of_legal_characters_is_a_channel(name: str) -> None:
    assert channel(name).name == name


@pytest.mark.parametrize("character", "%&=?:;,'\"<>[]\\^|`\n\t\x00\x7fäß€😀\u2028")
def test_any_other_character_makes_a_name_illegal(character: str) -> None:
    assert Channels().get(f"/foo{character}bar") is None
    assert Channels().get(f"/foo{character}") is None


@pytest.mark.parametrize("name", ["", "/", "foo", "foo/bar", " /foo", "//", "/foo//bar", "//foo"])
def test_a_name_without_a_leading_slash_or_with_an_empty_segment_is_illegal(name: str) -> None:
    assert Channels().get(name) is None


@pytest.mark.parametrize("name", ["/foo/", "/foo ", "/foo  ", "/foo/ "])
def test_trailing_spaces_and_one_trailing_slash_are_not_part_of_a_name(name: str) -> None:
    assert channel(name).name == "/foo"


def test_a_name_with_two_trailing_slashes_is_illegal() -> None:
    assert Channels().get("/foo//") is None


@pytest.mark.parametrize("name", ["/*", "/**", "/foo/*", "/foo/**"])
def test_a_last_segment_of_one_or_two_stars_makes_a_pattern(name: str) -> None:
    assert channel(name).is_wild


@pytest.mark.parametrize("name", ["/foo", "/foo*", "/foo/***", "/*foo"])
def test_a_segment_with_other_stars_makes_no_pattern(name: str) -> None:
    assert not channel(name).is_wild


@pytest.mark.parametrize("name", ["/*/foo", "/**/foo", "/foo/*/bar", "/foo/**/bar", "/**/*"])
def test_a_segment_of_stars_before_the_last_is_illegal(name: str) -> None:
    assert Channels().get(name) is None


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("/meta/connect", Kind.META),
        ("/meta/", Kind.META),
        ("/service/echo", Kind.SERVICE),
        ("/meta", Kind.BROADCAST),
        ("/metafoo", Kind.BROADCAST),
        ("/service", Kind.BROADCAST),
        ("/servicefoo/bar", Kind.BROADCAST),
        ("/foo/meta/bar", Kind.BROADCAST),
        ("/**", Kind.BROADCAST),
    ],
)
def test_only_names_below_meta_or_service_are_meta_or_service_channels(
    name: str, kind: Kind
) -> None:
    assert channel(name).kind is kind


def test_a_channel_is_looked_up_under_its_name_and_every_pattern_that_matches_it() -> None:
    assert channel("/a/b/c").lookups == ("/a/b/c", "/a/b/*", "/a/b/**", "/a/**", "/**")


def test_a_pattern_is_looked_up_once_under_each_name() -> None:
    assert channel("/a/*").lookups == ("/a/*", "/a/**", "/**")


def test_the_length_and_the_segments_of_a_name_are_limited() -> None:
    channels = Channels(max_length=8, max_segments=3)
    assert channels.get("/1234567") is not None
    assert channels.get("/12345678") is None
    assert channels.get("/a/b/c") is not None
    assert channels.get("/a/b/c/d") is None


def test_a_name_is_parsed_once() -> None:
    channels = Channels()
    assert channels.get("/foo") is channels.get("/foo")


def test_cached_names_are_forgotten_when_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_CACHED_NAMES", 3)
    channels = Channels()
    first = channels.get("/first")
    for name in ("/a", "no channel"):
        channels.get(name)
    assert channels.get("/first") is first
    channels.get("/b")
    assert channels.named("/first").name == "/first"
    assert channels.get("/first") is not first


def test_the_lookups_of_a_deep_channel_are_not_cached() -> None:
    shallow, deep = Channels().named("/a" * 8), Channels().named("/a" * 64)
    assert shallow.lookups is shallow.lookups
    assert deep.lookups is not deep.lookups
    assert deep.lookups == deep.lookups
    assert len(deep.lookups) == 66


def test_cached_names_are_forgotten_when_their_lookups_are_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_CACHED_CHARACTERS", 5000)
    channels = Channels()
    first = channels.get("/first")
    # Eight segments have ten lookups, of some 250 characters each.
    channels.get(f"/{'a' * 60}" * 8)
    assert channels.get("/first") is first
    channels.get(f"/{'b' * 60}" * 8)
    channels.get("/c")
    again = channels.get("/first")
    assert again is not first
    # There is room again.
    channels.get("/d")
    assert channels.get("/first") is again


# Against a naive model that compares segment by segment

SEGMENTS = st.sampled_from(["a", "b", "meta", "service", "*", "**", "a*", "", " ", "é", "x y"])
NAMES = st.builds(
    lambda segments, tail: "/" + "/".join(segments) + tail,
    st.lists(SEGMENTS, min_size=1, max_size=5),
    st.sampled_from(["", "/", " ", "%"]),
)
PLAIN = st.lists(st.sampled_from("ab"), min_size=1, max_size=4).map(lambda s: "/" + "/".join(s))
PATTERNS = st.builds(
    lambda plain, tail: (plain + tail) or "/**",
    st.one_of(st.just(""), PLAIN),
    st.sampled_from(["", "/*", "/**"]),
)
# Deep enough for every combination of the patterns above.
UNIVERSE = ["/" + "/".join(path) for depth in range(1, 7) for path in product("ab", repeat=depth)]


def matches(pattern: str, name: str) -> bool:
    """The model: one segment of the name after the other."""
    wanted, given_ = pattern.split("/")[1:], name.split("/")[1:]
    for depth, segment in enumerate(wanted):
        if segment == "**":
            return len(given_) > depth
        if len(given_) <= depth or (segment != "*" and segment != given_[depth]):
            return False
    return len(wanted) == len(given_)


def is_legal(name: str) -> bool:
    trimmed = name.strip()
    trimmed = trimmed[:-1] if trimmed.endswith("/") else trimmed
    segments = trimmed.split("/")[1:]
    if not segments or any(segment == "" for segment in segments):
        return False
    if "%" in name or "é" in name:
        return False
    return not any(segment in ("*", "**") for segment in segments[:-1])


@given(NAMES)
def test_a_name_is_legal_exactly_if_the_model_says_so(name: str) -> None:
    found = Channels().get(name)
    assert (found is not None) == is_legal(name)


@pytest.mark.slow
@given(st.text(max_size=40))
@example("/\ud800")
def test_any_text_can_be_looked_up_and_a_found_name_leads_to_itself(name: str) -> None:
    found = Channels().get(name)
    if found is not None:
        again = Channels().get(found.name)
        assert again is not None
        assert again.name == found.name
        assert again.lookups == found.lookups


def test_channels_below_a_reserved_name_are_reserved() -> None:
    channels = Channels()
    names = ["/sys/deadMessage", "/news/flash", "/newsy"]
    before = [channels.named(name).is_reserved for name in names]
    channels.reserve("/news/")
    after = [channels.named(name).is_reserved for name in names]
    assert (before, after) == ([True, False, False], [True, True, False])


@given(PATTERNS, PLAIN)
def test_a_subscription_is_found_exactly_if_it_matches(pattern: str, name: str) -> None:
    assert (pattern in channel(name).lookups) == matches(pattern, name)
    assert covers(pattern, name) == matches(pattern, name)


@given(PATTERNS, PATTERNS)
def test_a_pattern_covers_another_exactly_if_it_matches_all_that_the_other_matches(
    pattern: str, other: str
) -> None:
    matched = {name for name in UNIVERSE if matches(other, name)}
    assert covers(pattern, other) == (matched <= {n for n in UNIVERSE if matches(pattern, n)})


@given(PATTERNS, PATTERNS)
def test_patterns_overlap_exactly_if_some_channel_is_matched_by_both(one: str, other: str) -> None:
    both = any(matches(one, name) and matches(other, name) for name in UNIVERSE)
    assert overlaps(one, other) == overlaps(other, one) == both


@pytest.mark.slow
def test_reply_channels_drive_no_others_out_of_the_cache() -> None:
    channels = Channels()
    room = channels.get("/room")
    for number in range(20_001):
        channels.get(f"/ret/x/{number}")
    assert channels.get("/room") is room
    assert channels.named("/ret/x/1").lookups == lookups("/ret/x/1")
