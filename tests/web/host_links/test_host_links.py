"""Links between hosts are made with certificates, and carry what links of one host do."""

import asyncio
import logging
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.compose.forwarding import bound
from holdfast.store.links.connection import StoreUnavailable
from holdfast.web.host_links import far_keeper
from tests.store.store_process import until
from tests.web.host_links.stage import DOOR, HELLO, HOME, Certificates, both_loops, hall


def test_messages_of_the_shard_of_a_door_reach_a_home_on_another_host(
    tmp_path: Path, certificates: Certificates
) -> None:
    async def play() -> None:
        async with hall(tmp_path, certificates) as both:
            await both.opened()
            both.far.passage.send(b"a" * 3_000_000)
            both.far.passage.send(b"b")
            await until(lambda: len(both.inlet.came) == 2)
            assert [frame[:1] for *_, frame in both.inlet.came] == [b"a", b"b"]

    both_loops(play)


async def test_a_lost_link_is_made_again_where_the_store_says_that_the_shard_is(
    tmp_path: Path, certificates: Certificates
) -> None:
    async with hall(tmp_path, certificates) as both:
        await both.linked()
        assert (both.known.asked, both.door_keeper.is_near) == (1, False)
        both.known.host = DOOR
        await both.server.open(bound(tmp_path / "1.sock"))
        both.proxy.reset()
        await both.linked(is_linked=False)
        await both.linked()
        # Connections can be given to it now.
        assert both.door_keeper.is_near
        assert both.known.asked >= 2


async def test_a_worker_that_leaves_does_not_wait_until_doors_of_other_hosts_leave(
    tmp_path: Path, certificates: Certificates
) -> None:
    async with hall(tmp_path, certificates) as both:
        await both.linked()
        assert both.server.is_quiet_here
        assert not both.server.is_quiet
        # As a door of its own host is asked.
        both.server.pause()
        await until(lambda: both.server.is_quiet)


async def test_a_worker_that_is_there_again_takes_connections_that_waited(
    tmp_path: Path, certificates: Certificates
) -> None:
    async with hall(tmp_path, certificates) as both:
        await both.linked()
        both.receiver.stop_accepting()
        both.proxy.reset()
        await both.linked(is_linked=False)
        await asyncio.sleep(0.2)
        both.receiver.accept()
        await both.linked()


@pytest.mark.parametrize("is_slow", [True, False], ids=["slow", "away"])
async def test_a_shard_is_looked_for_where_it_was_if_the_store_does_not_say(
    tmp_path: Path,
    certificates: Certificates,
    monkeypatch: pytest.MonkeyPatch,
    is_slow: bool,
) -> None:
    monkeypatch.setattr(far_keeper, "_LOOKING_S", 0.1)

    async def host_of(_: int) -> str | None:
        if is_slow:
            await asyncio.sleep(3600)
        raise StoreUnavailable("away")

    async with hall(tmp_path, certificates) as both:
        await both.linked()
        monkeypatch.setattr(both.known, "host_of", host_of)
        both.proxy.reset()
        await both.linked(is_linked=False)
        await both.linked()


async def test_a_host_that_is_not_in_the_settings_is_named_once(
    tmp_path: Path, certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    async with hall(tmp_path, certificates, is_at="elsewhere") as both:
        await until(lambda: both.known.asked > 3)
    [said] = [each for each in caplog.messages if "no link to shard 1" in each]
    assert "elsewhere is none of the hosts in the settings" in said


async def test_a_port_at_which_no_host_listens_is_named_once(
    tmp_path: Path, certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    async with hall(tmp_path, certificates) as both:
        await both.linked()
        both.port_of_home = 1
        both.proxy.reset()
        await until(lambda: both.known.asked > 4)
    said = [each for each in caplog.messages if "no link to shard 1" in each]
    assert len([each for each in said if "('127.0.0.1', 1)" in each]) == 1


async def test_a_keeper_that_ends_while_it_connects_leaves_nothing(
    tmp_path: Path, certificates: Certificates
) -> None:
    async with hall(tmp_path, certificates) as both:
        both.receiver.stop_accepting()
        await asyncio.sleep(0.1)
        assert not both.far.is_linked
    assert both.door_keeper._moving is None


@pytest.mark.parametrize(
    ("home", "fault"),
    [
        (replace(HELLO, deployment="there"), "another deployment, there"),
        (replace(HELLO, count=4), "of 4 shards"),
        (replace(HELLO, form=2, highest=3), "has frames of form 2 to 3, not 1"),
        (replace(HELLO, host="127.0.0.3"), "it says that it is on 127.0.0.3, not on 127.0.0.1"),
        (replace(HELLO, host=""), "it says that it is on no host, not on 127.0.0.1"),
    ],
    ids=["deployment", "count", "form", "host", "no host"],
)
async def test_a_door_refuses_a_home_that_is_no_shard_of_the_deployment_on_that_host(
    tmp_path: Path,
    certificates: Certificates,
    caplog: pytest.LogCaptureFixture,
    home: object,
    fault: str,
) -> None:
    async with hall(tmp_path, certificates, home=home) as both:
        await until(lambda: "the link to shard 1 is refused" in caplog.text)
        # Several attempts.
        await asyncio.sleep(0.3)
        assert not both.far.is_linked
    refused = [each for each in caplog.messages if each.startswith("the link to shard 1")]
    assert len(refused) == 1
    assert fault in refused[0]


@pytest.mark.parametrize(
    ("door", "fault"),
    [
        ({"deployment": "there"}, "another deployment, there"),
        ({"shard": 2, "host": "127.0.0.3"}, "with a certificate for ['127.0.0.2']"),
        ({"host": "127.0.0.4"}, "'127.0.0.4' is none of the other hosts in the settings"),
        ({"host": HOME}, "'127.0.0.1' is none of the other hosts in the settings"),
        ({"host": ""}, "'no name' is none of the other hosts in the settings"),
        ({"shard": 1}, "it says that it is shard 1"),
        ({"form": 2, "highest": 2}, "has frames of form 2, not 1"),
    ],
    ids=["deployment", "other", "unknown", "own", "none", "shard", "form"],
)
async def test_a_home_refuses_a_door_that_is_not_what_it_says(
    tmp_path: Path,
    certificates: Certificates,
    caplog: pytest.LogCaptureFixture,
    door: dict[str, object],
    fault: str,
) -> None:
    async with hall(tmp_path, certificates, door=door) as both:
        await until(lambda: "a connection of another host is refused" in caplog.text)
        await asyncio.sleep(0.3)
        assert not both.far.is_linked
        assert not both.server._homes
    refused = [each for each in caplog.messages if "another host is refused" in each]
    assert len(refused) == 1
    assert fault in refused[0]


async def test_both_ends_take_the_highest_form_of_frames_that_both_have(
    tmp_path: Path, certificates: Certificates
) -> None:
    home = replace(HELLO, form=1, highest=4)
    async with hall(tmp_path, certificates, home=home, door={"form": 1, "highest": 3}) as both:
        await both.opened()
        forms = [both.far._link.form, *(each.link.form for each in both.server._homes)]  # type: ignore[union-attr]
        assert forms == [3, 3]


async def test_a_home_has_the_links_of_all_doors(
    tmp_path: Path, certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        async with hall(tmp_path, certificates) as both:
            await both.linked()
            other = asyncio.create_task(both.keeper(shard=2).run())
            await until(lambda: len(both.server._homes) == 2)
            assert len(both.receiver._links) == 2
            other.cancel()
            await until(lambda: len(both.receiver._links) == 1)
    assert caplog.messages == []
