"""Links are made between the shards of one deployment, and made again when they are lost."""

import asyncio
import json
import socket
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st

from holdfast.compose.forwarding import listen_for_links
from holdfast.compose.placement import Placement
from holdfast.compose.succession import Succession
from holdfast.web.forwarding import hello as hellos
from holdfast.web.forwarding import link_keeper
from holdfast.web.forwarding.asks import Asked
from holdfast.web.forwarding.far_shard import FarShard
from holdfast.web.forwarding.frames import FrameUnreadable, Kind, pack
from holdfast.web.forwarding.hello import Hello
from holdfast.web.forwarding.home_core import HomeCore
from holdfast.web.forwarding.link_keeper import LinkKeeper
from holdfast.web.forwarding.link_server import LinkServer
from holdfast.web.forwarding.passages import PassageIn, PassageOut
from holdfast.web.forwarding.request_home import Home
from holdfast.web.tasks import cancel
from tests.store.store_process import until
from tests.web.rig import Rig

HOME = Hello(shard=1, count=2, deployment="here", release="1.0")
DOOR = replace(HOME, shard=0)
LATER = replace(HOME, form=hellos.HIGHEST + 1, highest=hellos.HIGHEST + 1)


class Inlet:
    """Remembers the messages that came, with the links."""

    def __init__(self) -> None:
        self.came: list[tuple[int, int, int, bytes]] = []
        self.opened = 0
        self.lost: list[tuple[int, int]] = []
        self.grafts: list[tuple[int, int]] = []

    def open_link(self, shard: int, way: PassageIn) -> int:
        self.way = way
        self.opened += 1
        return 100 * shard + self.opened

    def take_messages(self, shard: int, link: int, n: int, frame: bytes) -> None:
        self.came.append((shard, link, n, frame))

    def grafted(self, shard: int, number: int) -> None:
        self.grafts.append((shard, number))

    def lose_link(self, shard: int, link: int) -> None:
        self.lost.append((shard, link))


class Ends:
    """A listening shard, and a door that connects to it."""

    def __init__(self, path: Path, door: Hello, home: Hello) -> None:
        self.rig = Rig()
        self.inlet = Inlet()
        self.place = Placement(path.parent, path.parent, number=1, count=2)
        self.far = FarShard(1, self.rig._clock)
        self.server = self.serve(home)
        self.keeper = LinkKeeper(1, path, door, self.far)

    def serve(self, home: Hello) -> LinkServer:
        rig = self.rig
        core = HomeCore(rig.bayeux, rig._clock, rig.endpoint.gate)
        parts = (rig.scheduler, rig.coalescer, core)
        return LinkServer(home, lambda: Home(*parts, 1, Asked(), self.inlet))

    async def listen(self) -> None:
        await self.server.open(listen_for_links(self.place, Succession()))

    async def linked(self, *, is_linked: bool = True) -> None:
        await until(lambda: self.far._may_send() is is_linked)


@asynccontextmanager
async def ends(path: Path, door: Hello = DOOR, home: Hello = HOME) -> AsyncIterator[Ends]:
    both = Ends(path, door, home)
    task = asyncio.create_task(both.keeper.run())
    try:
        yield both
    finally:
        await cancel(task)
        both.server.close()
        await asyncio.sleep(0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "links" / "1.sock"


def modes(path: Path) -> list[int]:
    return [stat.S_IMODE(each.stat().st_mode) for each in (path, path.parent)]


async def test_only_this_user_can_make_links(path: Path) -> None:
    async with ends(path) as both:
        await both.listen()
        assert modes(path) == [0o600, 0o700]


async def test_directories_made_while_links_are_opened_have_their_own_modes(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, bind = path.with_name("other"), socket.socket.bind

    def bind_slowly(self: socket.socket, place: str) -> None:
        bind(self, place)
        other.mkdir(mode=0o700)

    monkeypatch.setattr(socket.socket, "bind", bind_slowly)
    async with ends(path) as both:
        await both.listen()
    assert stat.S_IMODE(other.stat().st_mode) == 0o700


async def test_a_door_may_start_before_the_shard(path: Path) -> None:
    async with ends(path) as both:
        await asyncio.sleep(0.1)
        assert not both.far._may_send()
        await both.listen()
        await both.linked()


async def test_a_link_that_is_not_accepted_in_time_is_asked_for_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_keeper, "_GREETING_S", 0.2)
    loop = asyncio.get_running_loop()
    connect, attempts = loop.create_unix_connection, 0

    async def connect_later(*given: Any) -> Any:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            await asyncio.sleep(3600)
        return await connect(*given)

    monkeypatch.setattr(loop, "create_unix_connection", connect_later)
    async with ends(path) as both:
        await both.listen()
        await both.linked()
    assert attempts == 2


def test_a_keeper_that_is_stopped_just_when_its_link_is_connected_ends_in_order(path: Path) -> None:
    """Then uvloop closes the connection that the link has, and tells it nothing."""
    faults: list[Any] = []

    async def play() -> bool:
        loop: Any = asyncio.get_running_loop()
        connect = loop.create_unix_connection
        both = Ends(path, DOOR, HOME)

        async def connect_and_stop(factory: Any, path: str) -> Any:
            # In the turn in which the link hears that it is connected, and before that.
            loop.call_soon(task.cancel)
            return await connect(factory, path)

        loop.create_unix_connection = connect_and_stop
        loop.set_exception_handler(lambda _, context: faults.append(context))
        await both.listen()
        task = asyncio.create_task(both.keeper.run())
        await asyncio.wait([task])
        both.server.close()
        await asyncio.sleep(0)
        return task.cancelled()

    assert uvloop.run(play())
    assert faults == []


async def test_a_lost_link_is_made_again(path: Path) -> None:
    async with ends(path) as both:
        await both.listen()
        await both.linked()
        both.server.close()
        await both.linked(is_linked=False)
        both.server = both.serve(HOME)
        await both.listen()
        await both.linked()


@pytest.mark.parametrize(
    ("peer", "fault"),
    [
        (replace(HOME, deployment="there"), "another deployment, there, of 2 shards"),
        (replace(HOME, count=3), "another deployment, here, of 3 shards"),
        (LATER, "release 1.0 has frames of form 2, not 1"),
        (replace(HOME, shard=0), "it says that it is shard 0"),
        (replace(HOME, shard=7), "it says that it is shard 7"),
    ],
    ids=["deployment", "count", "form", "itself", "shard"],
)
async def test_a_peer_that_is_no_other_shard_of_the_deployment_is_refused(
    path: Path, caplog: pytest.LogCaptureFixture, peer: Hello, fault: str
) -> None:
    async with ends(path, home=peer) as both:
        await both.listen()
        await until(lambda: "the link to shard 1" in caplog.text)
        # Several attempts.
        await asyncio.sleep(0.2)
        assert not both.far._may_send()
    refused = [each for each in caplog.messages if each.startswith("the link to shard 1")]
    assert len(refused) == 1
    assert fault in refused[0]


async def test_a_shard_refuses_a_door_of_another_deployment(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with ends(path, door=replace(DOOR, deployment="there")) as both:
        await both.listen()
        await until(lambda: "a link of another process is refused" in caplog.text)
        assert not both.far._may_send()


async def test_nothing_is_heard_before_a_greeting(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with ends(path) as both:
        await both.listen()
        reader, writer = await asyncio.open_unix_connection(str(path))
        writer.write(pack(Kind.CLOSED, 1))
        async with asyncio.timeout(60):
            await reader.read()
        writer.close()
    assert "it brought CLOSED from the wrong side" in caplog.text


@pytest.mark.parametrize("data", [b"{", b"{}", b"[]", b"7", b"\xff", b"[" * 100_000])
def test_what_is_no_greeting_is_refused(data: bytes) -> None:
    with pytest.raises(FrameUnreadable, match="a greeting"):
        Hello.unpack(data)


# What the release before hosts says.
PLAIN = {"shard": 1, "count": 2, "deployment": "here", "release": "1.0", "form": 1}


def test_a_greeting_without_hosts_is_as_it_was_before_there_were_any() -> None:
    assert HOME.pack()[13:] == json.dumps(PLAIN).encode()
    assert Hello.unpack(json.dumps(PLAIN).encode()) == HOME


@pytest.mark.parametrize(
    "change",
    [
        {"shard": "1"},
        {"shard": True},
        {"count": None},
        {"deployment": ["here"]},
        {"release": {}},
        {"form": 1.5},
        {"highest": "2"},
        {"host": 7},
        {"link": None},
        {"renews": 1},
    ],
    ids=str,
)
def test_a_greeting_with_a_field_of_another_kind_is_refused(change: dict[str, Any]) -> None:
    [name] = change
    with pytest.raises(FrameUnreadable, match=f"a greeting: {name} is"):
        Hello.unpack(json.dumps(PLAIN | change).encode())


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=3))
def test_any_field_of_a_greeting_is_read_or_refused(value: object) -> None:
    for name in ("shard", "count", "deployment", "release", "form", "highest", "host", "link"):
        try:
            peer = Hello.unpack(json.dumps(PLAIN | {name: value}).encode())
        except FrameUnreadable:
            continue
        assert getattr(peer, name) == value
        # A fault has a cause.
        assert DOOR.fault_of(peer) is None or value != PLAIN.get(name)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_greeting_or_refused(data: bytes) -> None:
    with suppress(FrameUnreadable):
        assert Hello.unpack(data).pack()


@pytest.mark.parametrize(
    ("own", "peer", "form"),
    [
        ((1, 1), (1, 1), 1),
        ((1, 2), (1, 1), 1),
        ((1, 3), (2, 5), 3),
        ((1, 1), (2, 3), None),
        ((3, 4), (1, 2), None),
    ],
)
def test_two_releases_take_the_highest_form_that_both_have(
    own: tuple[int, int], peer: tuple[int, int], form: int | None
) -> None:
    mine, other = (
        replace(hello, form=lowest, highest=highest)
        for hello, (lowest, highest) in ((DOOR, own), (HOME, peer))
    )
    assert mine.form_with(other) == other.form_with(mine) == form
    assert Hello.unpack(other.pack()[13:]) == other


def test_a_greeting_of_a_later_form_may_have_more_fields() -> None:
    packed = HOME.pack()
    data = packed[packed.index(b"{") : -1] + b', "more": 1}'
    assert Hello.unpack(data) == HOME


async def test_messages_of_the_shard_of_a_door_reach_that_of_the_home(path: Path) -> None:
    async with ends(path) as both:
        passage, inlet = both.far.passage, both.inlet
        passage.send(b"too early")
        assert not passage.is_open
        await both.listen()
        await until(lambda: passage.is_open)
        assert passage.sent == (1, 0)
        passage.send(b"a")
        passage.send(b"b")
        assert passage.sent == (1, 2)
        await until(lambda: len(inlet.came) == 2)
        assert inlet.came == [(0, 1, 1, b"a"), (0, 1, 2, b"b")]


async def sending(both: Ends) -> PassageOut:
    """Return the way of messages over a link, on which one was sent."""
    passage = both.far.passage
    await both.listen()
    await until(lambda: passage.is_open)
    passage.send(b"a")
    return passage


async def test_a_lost_link_is_named_until_the_next_one_because_its_messages_may_still_arrive(
    path: Path,
) -> None:
    async with ends(path) as both:
        passage = await sending(both)
        both.server.close()
        await both.linked(is_linked=False)
        assert (passage.is_open, passage.sent) == (False, (1, 1))
        both.server = both.serve(HOME)
        await both.listen()
        await until(lambda: passage.is_open)
        assert passage.sent == (2, 0)


async def test_a_held_way_is_named_until_the_next_one_because_its_messages_may_still_arrive(
    path: Path,
) -> None:
    async with ends(path) as both:
        passage = await sending(both)
        both.server.hold()
        await until(lambda: not passage.is_open)
        assert passage.sent == (1, 1)
        await until(lambda: both.server.is_held)
        both.server.open_passages()
        await until(lambda: passage.is_open)
        assert passage.sent == (2, 0)


async def test_a_door_that_rests_hears_when_all_messages_have_arrived(path: Path) -> None:
    async with ends(path) as both:
        passage, inlet = both.far.passage, both.inlet
        passage.rest()
        assert passage.is_heard
        passage.resume()
        await both.listen()
        await until(lambda: passage.is_open)
        passage.send(b"a")
        passage.rest()
        assert not passage.is_open
        assert not passage.is_heard
        await until(lambda: passage.is_heard)
        assert len(inlet.came) == 1
        # It may go on at any time.
        assert not both.server.is_held
        # What comes behind other ways still names the link.
        assert passage.sent == (1, 1)
        passage.resume()
        assert passage.is_open


async def test_a_home_holds_messages_and_opens_the_way_again(path: Path) -> None:
    async with ends(path) as both:
        passage, inlet = both.far.passage, both.inlet
        await both.listen()
        await until(lambda: passage.is_open)
        passage.send(b"a")
        both.server.hold()
        assert not both.server.is_held
        await until(lambda: both.server.is_held)
        assert (len(inlet.came), passage.is_open) == (1, False)
        # Again, because another process could not take its place.
        both.server.open_passages()
        await until(lambda: passage.is_open)
        passage.send(b"b")
        await until(lambda: len(inlet.came) == 2)
        assert inlet.came[1] == (0, 2, 1, b"b")


async def test_a_way_that_was_not_held_stays_as_it_is(path: Path) -> None:
    async with ends(path) as both:
        passage, inlet = both.far.passage, both.inlet
        await both.listen()
        await until(lambda: passage.is_open)
        both.server.open_passages()
        passage.send(b"a")
        await until(lambda: len(inlet.came) == 1)
        assert (passage.sent, inlet.opened) == ((1, 1), 1)


async def test_a_way_opens_again_behind_everything_that_came_before(path: Path) -> None:
    async with ends(path) as both:
        passage, inlet = both.far.passage, both.inlet
        await both.listen()
        await until(lambda: passage.is_open)
        both.server.hold()
        both.server.open_passages()
        assert inlet.opened == 1
        passage.send(b"a")
        await until(lambda: passage.sent == (2, 0))
        assert inlet.came == [(0, 1, 1, b"a")]


async def test_a_door_that_rests_is_held_all_the_same(path: Path) -> None:
    async with ends(path) as both:
        passage, inlet = both.far.passage, both.inlet
        await both.listen()
        await until(lambda: passage.is_open)
        passage.rest()
        await until(lambda: passage.is_heard)
        both.server.hold()
        # It goes on before it has heard that.
        passage.resume()
        passage.send(b"a")
        assert not both.server.is_held
        await until(lambda: both.server.is_held)
        assert (len(inlet.came), passage.is_open) == (1, False)


async def test_a_home_prunes_channels_and_grafts_them(path: Path) -> None:
    async with ends(path) as both:
        passage, inlet = both.far.passage, both.inlet
        await both.listen()
        await until(lambda: passage.is_open)
        inlet.way.prune(["/a"])
        inlet.way.prune(["/b", "/ü"])
        await until(lambda: passage.pruned == {"/a", "/b", "/ü"})
        inlet.way.graft("/ü", 1)
        await until(lambda: inlet.grafts == [(0, 1)])
        assert passage.pruned == {"/a", "/b"}
        inlet.way.graft("", 2)
        await until(lambda: inlet.grafts == [(0, 1), (0, 2)])
        assert passage.pruned == set()


async def test_what_is_pruned_ends_when_the_way_is_opened_again(path: Path) -> None:
    async with ends(path) as both:
        passage, inlet = both.far.passage, both.inlet
        await both.listen()
        await until(lambda: passage.is_open)
        inlet.way.prune(["/a"])
        await until(lambda: passage.pruned == {"/a"})
        both.server.hold()
        await until(lambda: both.server.is_held)
        both.server.open_passages()
        await until(lambda: passage.is_open)
        assert passage.pruned == set()
        inlet.way.prune(["/a"])
        await until(lambda: passage.pruned == {"/a"})
        both.server.close()
        await until(lambda: not passage.is_open)
        assert passage.pruned == set()


async def test_a_lost_link_has_no_messages_any_more(path: Path) -> None:
    async with ends(path) as both:
        passage, inlet = both.far.passage, both.inlet
        await both.listen()
        await until(lambda: passage.is_open)
        both.server.close()
        await until(lambda: not passage.is_open)
        await until(lambda: inlet.lost == [(0, 1)])
        assert passage.sent == (0, 0)
        assert both.server.is_held


async def test_a_link_that_is_cut_is_made_again(path: Path) -> None:
    async with ends(path) as both:
        await both.listen()
        await until(lambda: both.far.passage.is_open)
        both.inlet.way.cut()
        await until(lambda: both.far.passage.sent == (2, 0))
        assert both.inlet.lost == [(0, 1)]


async def test_a_door_without_a_shard_sends_requests_alone(path: Path) -> None:
    async with ends(path, door=replace(HOME, shard=hellos.NO_SHARD)) as both:
        await both.listen()
        await both.linked()
        assert both.inlet.opened == 0
        assert both.server.is_held


def test_no_link_leads_to_a_door_without_a_shard() -> None:
    door = replace(HOME, shard=hellos.NO_SHARD)
    assert door.fault_of(HOME) is None
    assert HOME.fault_of(door) is None
    assert door.fault_of(door) is not None
    assert HOME.fault_of(replace(HOME, shard=-2)) is not None
