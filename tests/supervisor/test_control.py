"""Parcels between the supervisor and what it starts."""

import asyncio
import json
import os
import socket
from collections.abc import Iterator

import pytest

from holdfast.supervisor.control import (
    LARGEST_PARCEL,
    MOST_DESCRIPTORS,
    VARIABLE,
    Channel,
    Do,
    Say,
    channel_pair,
    given_channel,
    reason,
)
from holdfast.supervisor.packets import PacketRefused, PeerBehind, PeerGone

Pair = tuple[Channel, Channel]


@pytest.fixture
def pair() -> Iterator[Pair]:
    ends = channel_pair()
    yield ends
    for each in ends:
        each.close()


@pytest.fixture
def raw() -> Iterator[tuple[socket.socket, Channel]]:
    """An end that can send anything, and the channel that receives it."""
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    channel = Channel(other)
    yield one, channel
    one.close()
    channel.close()


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def send_until_it_fails(channel: Channel) -> None:
    for _ in range(100_000):
        channel.send(say=Say.ALIVE)


def test_packets_arrive_one_by_one_in_their_order(pair: Pair) -> None:
    ours, theirs = pair
    ours.send(say=Say.FORKED, pid=7)
    ours.send(say=Say.READY, url="http://127.0.0.1:8080")
    first, second = theirs.receive(), theirs.receive()
    assert first is not None
    assert first.fields == {"say": "forked", "pid": 7}
    assert second is not None
    assert second.fields == {"say": "ready", "url": "http://127.0.0.1:8080"}
    assert theirs.receive() is None


def test_both_ends_send_and_receive(pair: Pair) -> None:
    ours, theirs = pair
    theirs.send(do=Do.TAKE_BACK)
    received = ours.receive()
    assert received is not None
    assert received.fields == {"do": "take back"}


def test_descriptors_arrive_as_duplicates_that_no_program_inherits(pair: Pair) -> None:
    ours, theirs = pair
    reader, writer = os.pipe()
    ours.send([writer], say=Say.READY, names=["lock"])
    os.close(writer)
    received = theirs.receive()
    assert received is not None
    (copy,) = received.descriptors
    assert not os.get_inheritable(copy)
    os.write(copy, b"!")
    os.close(copy)
    assert os.read(reader, 2) == b"!"
    assert os.read(reader, 2) == b""
    os.close(reader)


def test_a_peer_that_closes_its_end_is_gone_after_its_last_words(pair: Pair) -> None:
    ours, theirs = pair
    theirs.send(say=Say.FAILED, why="no such file")
    theirs.close()
    last = ours.receive()
    assert last is not None
    assert last.fields["why"] == "no such file"
    with pytest.raises(PeerGone):
        ours.receive()
    with pytest.raises(PeerGone):
        ours.send(do=Do.OPEN)


def test_last_words_arrive_although_the_peer_never_read_what_it_was_told(pair: Pair) -> None:
    ours, theirs = pair
    ours.send(do=Do.OPEN)
    theirs.send(say=Say.FAILED, why="no such file")
    theirs.close()
    last = ours.receive()
    assert last is not None
    assert last.fields["why"] == "no such file"
    with pytest.raises(PeerGone):
        ours.receive()


def test_the_largest_packet_arrives_and_a_larger_one_is_not_sent(pair: Pair) -> None:
    ours, theirs = pair
    frame = len(json.dumps({"why": ""}))
    ours.send(why="x" * (LARGEST_PARCEL - frame))
    received = theirs.receive()
    assert received is not None
    assert len(received.fields["why"]) == LARGEST_PARCEL - frame
    with pytest.raises(PacketRefused, match="at most 16384 bytes"):
        ours.send(why="x" * (LARGEST_PARCEL - frame + 1))
    assert theirs.receive() is None


@pytest.mark.parametrize("text", ["x" * 20_000, "\N{GRINNING FACE}" * 20_000, "\0" * 1000])
def test_a_reason_always_fits(pair: Pair, text: str) -> None:
    ours, theirs = pair
    ours.send(failed=reason(text), serving=False)
    received = theirs.receive()
    assert received is not None
    assert received.fields["failed"].startswith(text[:1000])


def test_the_most_descriptors_arrive_and_more_are_not_sent(pair: Pair) -> None:
    ours, theirs = pair
    ours.send([0] * MOST_DESCRIPTORS, do=Do.START)
    received = theirs.receive()
    assert received is not None
    assert len(received.descriptors) == MOST_DESCRIPTORS
    for each in received.descriptors:
        os.close(each)
    with pytest.raises(PacketRefused, match="65 descriptors"):
        ours.send([0] * (MOST_DESCRIPTORS + 1), do=Do.START)


@pytest.mark.parametrize("data", [b"{", b"[1]", b"\xff", b"{}" + b" " * LARGEST_PARCEL])
def test_what_is_no_packet_is_refused_with_its_descriptors_closed(
    raw: tuple[socket.socket, Channel], data: bytes
) -> None:
    sender, receiver = raw
    before = open_descriptors()
    socket.send_fds(sender, [data], [0])
    sender.send(b'{"say": "alive"}')
    with pytest.raises(PacketRefused):
        receiver.receive()
    assert open_descriptors() == before
    following = receiver.receive()
    assert following is not None
    assert following.fields == {"say": "alive"}


def test_too_many_descriptors_are_refused_and_closed(raw: tuple[socket.socket, Channel]) -> None:
    sender, receiver = raw
    before = open_descriptors()
    socket.send_fds(sender, [b"{}"], [0] * (MOST_DESCRIPTORS + 40))
    with pytest.raises(PacketRefused):
        receiver.receive()
    assert open_descriptors() == before


def test_a_peer_that_reads_nothing_makes_nobody_wait(pair: Pair) -> None:
    ours, theirs = pair
    with pytest.raises(PeerBehind):
        send_until_it_fails(ours)
    while theirs.receive() is not None:
        pass
    ours.send(say=Say.ALIVE)


async def test_a_loop_is_told_of_packets_and_of_the_end(pair: Pair) -> None:
    ours, theirs = pair
    heard: list[object] = []
    is_over = asyncio.Event()

    def hear() -> None:
        try:
            while (parcel := ours.receive()) is not None:
                heard.append(parcel.fields["do"])
        except PeerGone:
            is_over.set()

    loop = asyncio.get_running_loop()
    loop.add_reader(ours.fileno(), hear)
    theirs.send(do=Do.LEAVE)
    theirs.send(do=Do.GO)
    theirs.close()
    async with asyncio.timeout(30):
        await is_over.wait()
    loop.remove_reader(ours.fileno())
    assert heard == ["leave", "go"]


def test_a_process_takes_the_channel_that_its_environment_names_once(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = pair
    inherited = os.dup(theirs.fileno())
    os.set_inheritable(inherited, True)
    monkeypatch.setenv(VARIABLE, str(inherited))
    channel = given_channel()
    assert channel is not None
    assert not os.get_inheritable(channel.fileno())
    channel.send(say=Say.ALIVE)
    received = ours.receive()
    assert received is not None
    assert received.fields == {"say": "alive"}
    assert VARIABLE not in os.environ
    assert given_channel() is None
    channel.close()
