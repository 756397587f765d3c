"""Channels with broken receivers are held and probed; poison messages become dead letters."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from holdfast.delivery.queues.dispatcher import DispatcherState as Contact
from holdfast.settings import ChannelSettings
from tests.unit.bayeux import harness
from tests.unit.bayeux.harness import Asked, Client, Json, Server
from tests.unit.bayeux.operated_server import letters
from tests.unit.extensions.delivering import HOLDBACK, codes, connect, no, publish, receiver

ERROR = "user.update.error"
HELD_BACK = "503:communication.user.holdback,/a:channel_held_back"


def server_of(**options: Any) -> Server:
    """A server that guards the channel."""
    return harness.server_of(channels={"/a": ChannelSettings(guard=True)}, **options)


def broken(data: object) -> bool:
    return False


def strict(data: object) -> bool:
    """As a page that throws on data that are no object."""
    return isinstance(data, dict)


def hear(server: Server, client: Client, takes: Callable[[Any], bool], code: str = ERROR) -> Json:
    """The data that a client gets; it refuses those that it does not take."""
    asked = connect(client)
    server.turn()
    refusals = [no(event, code) for event in asked.events if not takes(event["data"])]
    connect(client, *refusals)
    server.turn()
    return {"data": asked.data, "refused": len(refusals)}


def settle_in(server: Server, *clients: Client) -> None:
    """Publish a message that all of these take."""
    publish(server, {"text": "all is well"})
    server.turn()
    for client in clients:
        hear(server, client, lambda _: True)


def break_down(server: Server, *clients: Client, seconds: int = 10, code: str = ERROR) -> None:
    """Let these refuse all that is published for so long, or until the channel is held."""
    for number in range(2 * seconds):
        publish(server, {"number": number})
        server.turn()
        for client in clients:
            hear(server, client, broken, code)
        if is_held(server):
            break
        server.advance(0.5)


def acknowledging(server: Server) -> Client:
    """A client with acks alone."""
    client = server.client(ext={"ack": True})
    client.connect(ext={"ack": 0}, advice={"timeout": 0})
    client.subscribe("/a")
    return client


def data_so_far(asked: Asked) -> list[Any]:
    """What came with the answer, if there was one."""
    return [] if asked.is_held else asked.data


def is_held(server: Server) -> bool:
    return server.bayeux.state.guard.is_held("/a")


# Broken receivers


def test_a_channel_whose_receivers_all_break_down_is_held_until_an_operator_releases_it() -> None:
    server = server_of()
    watcher = server.connected()
    watcher.session.identity.role = "operator"
    watcher.subscribe("/sys/alert")
    clients = [receiver(server) for _ in range(3)]
    settle_in(server, *clients)
    break_down(server, *clients)
    (alert,) = watcher.connect().data
    assert (alert["kind"], alert["channel"]) == ("channel held back", "/a")
    assert alert["reason"].startswith("3 of 3 receivers refused ")
    assert server.keeper.held["/a"].reason == alert["reason"]
    before = len(codes(server))
    publish(server, "later")
    assert connect(clients[0]).data[-1:] != ["later"]
    assert len(codes(server)) == before
    server.bayeux.life.channel_holds.release("/a", "operator", "operator/ann")
    assert connect(clients[0]).data[-1] == "later"
    assert server.keeper.held == {}


def test_without_a_guard_each_refused_message_becomes_a_dead_letter_and_the_next_one_follows() -> (
    None
):
    server = harness.server_of()
    clients = [receiver(server) for _ in range(3)]
    settle_in(server, *clients)
    break_down(server, *clients)
    assert not is_held(server)
    assert codes(server) == [ERROR] * 60
    assert server.balances()


@pytest.mark.slow
def test_a_channel_is_not_held_while_one_receiver_takes_what_others_refuse() -> None:
    server = server_of()
    good = acknowledging(server)
    bad = [receiver(server) for _ in range(6)]
    settle_in(server, good, *bad)
    for number in range(20):
        publish(server, {"number": number})
        for client in bad:
            hear(server, client, broken)
        assert connect(good).data == [{"number": number}]
        connect(good)
        server.advance(0.5)
    assert not is_held(server)


@pytest.mark.slow
def test_one_subject_cannot_stop_a_channel_however_many_sessions_it_has() -> None:
    server = server_of()
    quiet = acknowledging(server)
    bad = [receiver(server, session=f"joe/{number}") for number in range(1, 7)]
    settle_in(server, quiet, *bad)
    break_down(server, *bad)
    assert not is_held(server)


@pytest.mark.slow
def test_one_browser_cannot_stop_a_channel_however_many_sessions_it_has() -> None:
    server = server_of()
    browser = server.connected().browser
    bad = []
    for _ in range(6):
        client = server.client(browser=browser, ext={"ack": True, "delivery": True})
        connect(client)
        client.subscribe("/a")
        bad.append(client)
    settle_in(server, *bad)
    break_down(server, *bad)
    assert not is_held(server)


def test_holdbacks_of_all_receivers_do_not_hold_their_channel() -> None:
    server = server_of()
    bad = [receiver(server, session=f"eve{n}/1") for n in range(3)]
    settle_in(server, *bad)
    break_down(server, *bad, code=HOLDBACK)
    assert not is_held(server)


@pytest.mark.slow
def test_receivers_that_are_held_back_away_or_lost_do_not_count_for_a_channel() -> None:
    server = server_of()
    held, left, gone = (receiver(server, session=f"eve{n}/1") for n in range(3))
    server.bayeux.life.hold_back(held.session, "for a while", who="operator", now=server.now)
    left.send({"channel": "/meta/disconnect"})
    server.turn()
    bad = [receiver(server) for _ in range(3)]
    server.advance(9)
    for client in bad:
        connect(client)
    server.advance(5)
    assert gone.session.dispatcher is not None
    assert gone.session.dispatcher.state is Contact.POLLING
    settle_in(server, *bad)
    break_down(server, *bad)
    assert is_held(server)


def test_the_guard_holds_a_channel_by_the_limits_of_its_options() -> None:
    server = server_of(guard_window=12_000, guard_receivers=1, guard_messages=10)
    client = receiver(server)
    settle_in(server, client)
    # The first is refused before the guard listens.
    break_down(server, client, seconds=5)
    assert not is_held(server)
    break_down(server, client, seconds=2)
    assert is_held(server)


def test_a_held_channel_still_flows_to_receivers_that_cannot_refuse() -> None:
    server = server_of()
    plain = server.connected()
    plain.subscribe("/a")
    oneway = receiver(server, ack=False, oneway=True)
    bad = [receiver(server) for _ in range(3)]
    settle_in(server, *bad)
    break_down(server, *bad)
    assert is_held(server)
    assert len(plain.connect().data) > 10
    asked = plain.connect()
    publish(server, "later")
    server.turn()
    assert asked.data == ["later"]
    assert connect(oneway, ack=None).data[-1] == "later"
    assert server.balances()


# Poison messages


@pytest.mark.slow
def test_malformed_publishes_become_dead_letters_and_their_channel_flows() -> None:
    server = server_of()
    pages = [receiver(server) for _ in range(5)]
    settle_in(server, *pages)
    eve = server.connected()
    poison: list[Any] = [None, 7, "x", [], True, None, 8]
    for data in poison:
        eve.publish("/a", data)
        for page in pages:
            hear(server, page, strict)
        server.advance(2.0)
    assert not is_held(server)
    server.connected().publish("/a", {"text": "hello"})
    assert [hear(server, page, strict)["data"] for page in pages] == [[{"text": "hello"}]] * 5
    assert len(letters(server)) == len(poison) * len(pages)
    assert server.balances()


@pytest.mark.slow
@pytest.mark.parametrize("is_known", [False, True])
def test_strangers_cannot_hold_a_channel_whose_other_messages_pass(is_known: bool) -> None:
    server = server_of()
    pages = [receiver(server) for _ in range(3)]
    # They refuse everything, and are the majority.
    accomplices = [receiver(server) for _ in range(8)]
    strangers = [server.connected() for _ in range(8)]
    ann = server.connected()
    if is_known:
        for stranger in strangers:
            stranger.publish("/a", {"text": "hi"})
            for page in (*pages, *accomplices):
                hear(server, page, strict)
    for number in range(60):
        for stranger in strangers:
            stranger.publish("/a", number)
        ann.publish("/a", {"number": number})
        for client in accomplices:
            hear(server, client, broken)
        for page in pages:
            assert {"number": number} in hear(server, page, strict)["data"]
        server.advance(0.5)
        assert not is_held(server)
    assert server.balances()


# Probes


def held_server() -> tuple[Server, list[Client]]:
    """Three receivers that broke down, for whom nothing waits yet."""
    server = server_of()
    clients = [receiver(server) for _ in range(3)]
    settle_in(server, *clients)
    break_down(server, *clients)
    assert is_held(server)
    for client in clients:
        server.bayeux.life.clear(client.session)
    return server, clients


@pytest.mark.slow
def test_a_held_channel_is_probed_with_one_message_for_one_receiver_after_growing_pauses() -> None:
    server, clients = held_server()
    publish(server, *range(10))
    times, begin = [], server.now
    for _ in range(600):
        server.advance(0.1)
        got = [hear(server, client, broken) for client in clients]
        tried = sum(len(each["data"]) for each in got)
        assert tried <= 1
        if tried:
            times.append(round(server.now - begin))
        for client in clients:
            server.bayeux.life.clock.touch(client.session, server.now)
    assert is_held(server)
    gaps = [after - before for before, after in pairwise(times)]
    assert gaps == sorted(gaps)
    assert gaps[:2] == [10, 20]
    probe = server.bayeux.state.guard.probes["/a"]
    assert probe.failures == len(times)


@pytest.mark.slow
def test_a_receiver_that_takes_the_probed_message_releases_the_channel_for_all() -> None:
    server, clients = held_server()
    watcher = server.connected()
    watcher.session.identity.role = "operator"
    watcher.subscribe("/sys/alert")
    held = [connect(client, advice={"timeout": 60_000}) for client in clients]
    publish(server, "first", "second")
    for _ in range(2):
        server.advance(6)
        watcher.connect(advice={"timeout": 0})
    (tried,) = [place for place, asked in enumerate(held) if data_so_far(asked)]
    assert held[tried].data == ["first"]
    assert is_held(server)
    assert connect(clients[tried]).data == ["second"]
    assert not is_held(server)
    server.turn()
    others = [asked.data for place, asked in enumerate(held) if place != tried]
    assert others == [["first", "second"]] * 2
    alert = watcher.connect().data[-1]
    assert (alert["kind"], alert["channel"]) == ("channel flows again", "/a")
    assert server.keeper.held == {}
    assert server.balances()


@pytest.mark.slow
def test_a_held_channel_is_probed_soon_with_a_message_of_another_publisher() -> None:
    server = server_of()
    pages = [receiver(server) for _ in range(3)]
    eve = server.connected()
    eve.publish("/a", {"text": "hi"})
    for page in pages:
        hear(server, page, strict)
    for number in range(40):
        eve.publish("/a", number)
        for page in pages:
            hear(server, page, strict)
        server.advance(0.5)
    # All that the guard saw is that everybody refuses a publisher whose messages had passed.
    assert is_held(server)
    for _ in range(60):
        server.advance(1)
        for page in pages:
            hear(server, page, strict)
    assert is_held(server)
    ann = server.connected()
    ann.publish("/a", {"text": "hello"})
    for _ in range(15):
        server.advance(0.1)
        for page in pages:
            hear(server, page, strict)
    assert not is_held(server)


@pytest.mark.slow
def test_a_probe_without_a_verdict_leaves_the_channel_held_and_another_receiver_is_probed() -> None:
    server, clients = held_server()
    publish(server, "first")
    got: dict[Client, list[int]] = {}
    times = []
    for _ in range(60):
        server.advance(1)
        for client in clients:
            # It processes what it got, and never finishes.
            asked = connect(client, delivery={"pending": got.get(client, [])})
            if asked.data:
                times.append(server.now)
                got[client] = [event["ext"]["delivery"]["seq"] for event in asked.events]
    assert len(got) == len(times) == 3
    assert [after - before for before, after in pairwise(times)] == [15, 15]
    assert is_held(server)
    assert server.balances()


@pytest.mark.slow
def test_a_publish_with_refuse_held_is_refused_while_its_channel_is_held() -> None:
    server, clients = held_server()
    ann = server.connected()
    asked = {"delivery": {"refuseHeld": True}}
    assert ann.publish("/a", "urgent", ext=asked).reply["error"] == HELD_BACK
    assert ann.publish("/a", "patient", ext={"delivery": {"refuseHeld": False}}).reply["successful"]
    assert ann.publish("/b", "urgent", ext=asked).reply["successful"]
    server.bayeux.life.channel_holds.release("/a", "operator", "operator/ann")
    assert ann.publish("/a", "urgent", ext=asked).reply["successful"]
    assert connect(clients[0]).data[-2:] == ["patient", "urgent"]
    wrong = ann.publish("/a", "x", ext={"delivery": {"refuseHeld": "yes"}}).reply["error"]
    assert wrong == "400:user.publish,refuseHeld:delivery_invalid"
