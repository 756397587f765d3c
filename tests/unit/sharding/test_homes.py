"""Each shard says the same about where a subject, a guest or a channel is at home."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from holdfast.cluster.calls import confirmation_of
from holdfast.cluster.frames import read
from holdfast.cluster.shards import Homes, Shards, first_map
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.shard_call import Effect, ShardCall, effect_of
from holdfast.sharding.homes import ShardHomes

# Other classes take the place of some, which compiled code does not let in.
pytestmark = pytest.mark.interpreted

SEGMENTS = {"/news/**": 1}


def homes(number: int, segments: dict[str, int], *topics: str) -> ShardHomes:
    rows = SimpleNamespace(topics={*topics})
    trimming = SimpleNamespace(overflowing=())
    own = SimpleNamespace(log=SimpleNamespace(pass_on=None), rows=rows, trimming=trimming)
    shards = Shards(first_map(2), Homes(segments), lambda name: 1000 * len(name) // 100 % 1000)
    return ShardHomes(
        number,
        shards,
        cast("Any", own),
        cast("Any", SimpleNamespace(is_available=True)),
        stamp=int,
        clock=float,
        core_clock=float,
        steady=float,
        wake=lambda: None,
    )


def test_no_call_says_what_is_here_before_that_is_restored() -> None:
    here = homes(0, SEGMENTS)
    assert not here.may_send(1)
    here.begin(cast("Any", SimpleNamespace()), {})
    assert here.may_send(1)


@pytest.mark.parametrize("channel", ["/news/a", "/news/" + 50 * "a", "/news", "/other"])
def test_a_channel_has_one_home_or_none(channel: str) -> None:
    first, second = homes(0, SEGMENTS), homes(1, SEGMENTS)
    # Asked again, they remember it.
    for _ in range(2):
        said = [first.home_of(channel), second.home_of(channel)]
        has_home = channel.startswith("/news/")
        assert said in ([None, 0], [1, None]) if has_home else said == [None, None]
        assert first.has_home(channel) is second.has_home(channel) is has_home


def test_without_rules_no_channel_has_a_home() -> None:
    assert homes(0, {}).home_of("/news/a") is None


def test_topics_without_a_rule_have_homes_by_their_first_segments() -> None:
    topics = ["/a/b/c", "/a/d", f"/{50 * 'a'}/b"]
    first, second = homes(0, SEGMENTS, *topics), homes(1, SEGMENTS, *topics)
    said = [(first.home_of(each), second.home_of(each)) for each in topics]
    assert said[0] == said[1] != said[2]
    assert {*said} == {(None, 0), (1, None)}
    assert first.has_home("/a/d")
    assert not first.has_home("/a/e")
    assert first.home_of("/a/e") is second.home_of("/a/e") is None
    # Patterns may cover some of them.
    assert first.homes_of("/a/*") == ([None] if said[0][0] is None else [said[0][0]])
    assert first.homes_of("/**") == first.homes_of("/*") == [None, 1]
    assert first.homes_of("/news/**")[0] == homes(0, SEGMENTS).homes_of("/news/**")[0]


def test_a_topic_that_a_rule_gives_a_home_stays_there() -> None:
    here = homes(0, {"/news/**": 2}, "/news/a/b")
    assert here.home_of("/news/a/b") == here.home_of("/news/a/c")
    here.own_topics.add("/news/a/c")
    assert here.is_topic("/news/a/c")
    assert here.home_of("/news/a/b") == here.home_of("/news/a/c")


def test_a_subject_has_one_home() -> None:
    for subject in ("joe", 60 * "a"):
        said = [homes(number, {}).home_of_subject(subject) for number in range(2)]
        assert said in ([None, 0], [1, None])


def test_a_guest_is_where_its_name_says_if_there_is_such_a_shard() -> None:
    assert [homes(0, {}).home_of_guest(shard) for shard in range(3)] == [None, 1, None]


def test_a_pattern_may_have_several_homes() -> None:
    rules = {"/news/**": 1, "/sport/*": 2}
    for number, other in ((0, 1), (1, 0)):
        here = homes(number, rules)
        assert here.homes_of("/news/a") in ([other], [None], (other,), (None,))
        assert here.homes_of("/news/a") == (here.home_of("/news/a"),)
        # All these channels have one home, and those of the next pattern any.
        assert here.homes_of("/news/**") == [here.home_of("/news/a")]
        assert here.homes_of("/sport/*") == [None, other]
        assert here.homes_of("/**") == [None, other]
        assert here.homes_of("/other/**") == [None]


@pytest.mark.parametrize("is_available", [True, False])
def test_an_answer_that_must_come_behind_what_waits_says_nothing_instead(
    is_available: bool,
) -> None:
    done: list[Any] = []
    log = SimpleNamespace(pass_on=None, flush=lambda _: done.append("flush"))
    rows = SimpleNamespace(topics=())
    passing = SimpleNamespace(behind=lambda: {"1": "5 7"})
    own = SimpleNamespace(log=log, is_available=is_available, rows=rows, passing=passing)
    store = SimpleNamespace(
        append_facts=lambda _, parts, __, names: done.append((parts["1"], names))
    )
    shards = Shards(first_map(2), Homes({}), lambda _: 0)
    here = ShardHomes(
        *(0, shards, cast("Any", own), cast("Any", store)),
        stamp=int,
        clock=float,
        core_clock=float,
        steady=float,
        wake=lambda: None,
    )
    here.answer_behind(ShardCall(1, 5, "1 5", "what", b""), b"answer")
    flushed, (part, names) = done
    [answer] = read(part).all_entries()
    assert read(part).behind == {"1": "5 7"}
    assert (flushed, answer.data, names) == ("flush", b"answer" if is_available else b"{}", ["1 5"])


@pytest.mark.parametrize("is_confirmed", [True, False])
def test_the_sender_of_a_call_hears_when_replicas_have_what_it_asked_for(
    is_confirmed: bool,
) -> None:
    passed: list[Any] = []
    log = SimpleNamespace(pass_on=lambda *entry: passed.append(entry))
    own = SimpleNamespace(log=log, rows=SimpleNamespace(topics=()))
    shards = Shards(first_map(2), Homes({}), lambda _: 0)
    here = ShardHomes(
        *(0, shards, cast("Any", own), cast("Any", None)),
        stamp=int,
        clock=float,
        core_clock=float,
        steady=float,
        wake=lambda: passed.append("wake"),
    )
    call = ShardCall(1, 7, "1 7", "published", b"")
    message = Message(b"{}", id=1, channel="/a", sender="")
    Effect(call, b"answer").mark(message)
    effect = effect_of(message)
    assert effect is not None
    effect.is_confirmed = is_confirmed
    here.has_answered(message)
    assert passed == ([(confirmation_of(call), 1), "wake"] if is_confirmed else [])
