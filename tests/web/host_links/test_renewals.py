"""A link between hosts outlives its connections: another one takes it over between two frames."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from holdfast.web.host_links import far_keeper, moving_transport
from tests.store.store_process import until
from tests.web.host_links.stage import DOOR, LONG_AGO, Certificates, Hall, both_loops, hall


def soon(monkeypatch: pytest.MonkeyPatch, after_s: float = 0.1, *, oldest_s: float = 3600) -> None:
    """Let links be renewed after this time, and again after failures."""
    monkeypatch.setattr(far_keeper, "_RENEWED_AFTER_S", (after_s, after_s))
    monkeypatch.setattr(far_keeper, "_RENEWED_AGAIN_S", after_s)
    monkeypatch.setattr(far_keeper, "_OLDEST_S", oldest_s)


class Ways:
    """The connections on which the link of the door has written."""

    def __init__(self, both: Hall) -> None:
        self._both = both
        self.seen: list[Any] = []

    def look(self) -> int:
        if self._both.far._link is not None:
            now = self._both.transport._writes
            if now not in self.seen:
                self.seen.append(now)
        return len(self.seen)


def test_nothing_is_lost_doubled_or_late_while_connections_follow_each_other(
    tmp_path: Path, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    soon(monkeypatch, 0.02)

    async def play() -> None:
        async with hall(tmp_path, certificates) as both:
            await both.opened()
            ways, sent = Ways(both), 0
            while ways.look() < 8:
                # Much of it is unread when the next connection comes.
                for size in (10, 300_000, 10):
                    sent += 1
                    both.far.passage.send(b"%d:" % sent + bytes(size))
                both.inlet.way.graft(f"/a{sent}", sent)
                await asyncio.sleep(0.005)
            await until(lambda: len(both.inlet.came) == sent)
            assert [int(frame.split(b":")[0]) for *_, frame in both.inlet.came] == [
                *range(1, sent + 1)
            ]
            grafts = [number for _, number in both.inlet.grafts]
            await until(lambda: len(both.inlet.grafts) == sent // 3)
            assert grafts == sorted(grafts)
            # It was one link all the time.
            assert (both.inlet.opened, both.inlet.lost, both.known.asked) == (1, [], 1)
            assert len(both.receiver._links) == 1

    both_loops(play)


async def test_connections_that_are_left_are_closed(
    tmp_path: Path, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    soon(monkeypatch)
    async with hall(tmp_path, certificates) as both:
        await both.opened()
        ways = Ways(both)
        await until(lambda: ways.look() == 3)
        await until(lambda: both.proxy.connections <= 2)
        for left in ways.seen[:-1]:
            await until(left.transport.is_closing)


async def test_a_renewed_connection_has_the_certificates_of_its_time(
    tmp_path: Path, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    soon(monkeypatch, 0.3)
    async with hall(tmp_path, certificates) as both:
        await both.opened()
        ways = Ways(both)
        ways.look()
        certificates.home = certificates.of("127.0.0.1")
        await until(lambda: ways.look() == 2)
        shown = [
            each.transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
            for each in ways.seen
        ]
        assert shown[0] != shown[1]


async def test_a_link_that_cannot_be_renewed_goes_on_until_it_is_too_old(
    tmp_path: Path,
    certificates: Certificates,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    soon(monkeypatch, 0.2, oldest_s=3.0)
    async with hall(tmp_path, certificates) as both:
        await both.opened()
        certificates.door = certificates.of(DOOR, ago=LONG_AGO)
        await until(lambda: "certificate has expired" in caplog.text)
        assert both.far.is_linked
        both.far.passage.send(b"a")
        await until(lambda: len(both.inlet.came) == 1)
        await both.linked(is_linked=False)
        assert "no new connection could take it over in an hour" in caplog.text
        await until(lambda: both.known.asked > 2)
        assert not both.far.is_linked


async def test_a_home_that_does_not_know_the_link_refuses_to_renew_it(
    tmp_path: Path,
    certificates: Certificates,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    soon(monkeypatch, 0.2)
    async with hall(tmp_path, certificates) as both:
        await both.opened()
        known, both.receiver._links = both.receiver._links, {}
        await until(lambda: "has no such link" in caplog.text)
        assert both.far.is_linked
        ways = Ways(both)
        ways.look()
        both.receiver._links = known
        await until(lambda: ways.look() == 2)
        assert both.known.asked == 1


async def test_a_door_of_another_host_cannot_take_over_a_link(
    tmp_path: Path, certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    async with hall(tmp_path, certificates) as both:
        await both.opened()
        keeper = both.keeper(host="127.0.0.3", shard=0)
        keeper._host, keeper._name, keeper.is_near = "127.0.0.1", both.door_keeper._name, False
        certificates.door = certificates.of("127.0.0.3")
        assert not await keeper._renew(both.transport)
        assert "shard 0 on 127.0.0.3 has no such link" in caplog.text
        assert both.far.is_linked


@pytest.mark.parametrize("is_at_door", [True, False], ids=["door", "home"])
async def test_a_link_whose_next_connection_breaks_in_the_middle_is_made_again(
    tmp_path: Path,
    certificates: Certificates,
    monkeypatch: pytest.MonkeyPatch,
    is_at_door: bool,
) -> None:
    async with hall(tmp_path, certificates) as both:
        await both.opened()
        hear = moving_transport.MovingTransport._hear_moved
        heard: list[object] = []

        def break_once(self: Any, *args: Any) -> None:
            is_door = self is both.transport
            if is_door is is_at_door and not heard:
                heard.append(self._next)
                self._next.abort()
            hear(self, *args)

        # Links have it from when they began.
        monkeypatch.setattr(moving_transport.MovingTransport, "_hear_moved", break_once)
        both.proxy.reset()
        await both.linked(is_linked=False)
        await both.opened()
        asked = both.known.asked
        await both.door_keeper._renew(both.transport)
        await until(lambda: both.known.asked > asked)
        assert heard
        await both.opened()
        both.far.passage.send(b"a")
        await until(lambda: len(both.inlet.came) == 1)


async def test_a_link_whose_old_connection_is_swallowed_while_it_moves_ends(
    tmp_path: Path, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beats of the new connection do not count before the old one is read to its end."""
    monkeypatch.setattr(moving_transport, "_TICK_S", 0.05)
    async with hall(tmp_path, certificates) as both:
        await both.opened()
        write = moving_transport.MovingTransport._write_on_next
        swallowed: list[object] = []

        def swallow(self: Any) -> None:
            if not swallowed:
                swallowed.append(self)
                self._writes = self._next
            else:
                write(self)

        monkeypatch.setattr(moving_transport.MovingTransport, "_write_on_next", swallow)
        asked = both.known.asked
        assert not await both.door_keeper._renew(both.transport)
        assert swallowed
        await until(lambda: both.known.asked > asked)
        await both.opened()


async def test_a_link_that_moves_cannot_move_once_more_at_the_same_time(
    tmp_path: Path, certificates: Certificates
) -> None:
    async with hall(tmp_path, certificates) as both:
        await both.opened()
        transport = both.transport
        both.receiver._links[("127.0.0.2", 0, both.door_keeper._name)]._is_closing = True
        assert not await both.door_keeper._renew(transport)
        both.receiver._links[("127.0.0.2", 0, both.door_keeper._name)]._is_closing = False
        assert await both.door_keeper._renew(transport)
        assert both.far.is_linked
        transport.close()
        assert not await both.door_keeper._renew(transport)
