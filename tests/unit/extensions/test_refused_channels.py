"""Channels with broken receivers are held and probed; poison messages become dead letters."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from holdfast.delivery.dispatcher import DispatcherState as Contact
from holdfast.delivery.guard import GuardLimits
from tests.unit.bayeux.harness import Asked, Client, House, Json
from tests.unit.extensions.delivering import (
    HOLDBACK,
    codes,
    connect,
    data_of,
    house_of,
    no,
    publish,
    receiver,
)

ERROR = "user.update.error"
HELD_BACK = "503:communication.user.holdback,/a:channel_held_back"


def broken(data: object) -> bool:
    return False


def strict(data: object) -> bool:
    """As a page that throws on data that are no object."""
    return isinstance(data, dict)


def hear(house: House, client: Client, takes: Callable[[Any], bool], code: str = ERROR) -> Json:
    """The data that a client gets; it refuses those that it does not take."""
    asked = connect(client)
    house.turn()
    refusals = [no(event, code) for event in asked.events if not takes(event["data"])]
    connect(client, *refusals)
    house.turn()
    return {"data": asked.data, "refused": len(refusals)}


def settle_in(house: House, *clients: Client) -> None:
    """Publish a message that all of these take."""
    publish(house, {"text": "all is well"})
    house.turn()
    for client in clients:
        hear(house, client, lambda _: True)


def break_down(house: House, *clients: Client, seconds: int = 10, code: str = ERROR) -> None:
    """Let these refuse all that is published for so long, or until the channel is held."""
    for number in range(2 * seconds):
        publish(house, {"number": number})
        house.turn()
        for client in clients:
            hear(house, client, broken, code)
        if is_held(house):
            break
        house.advance(0.5)


def acknowledging(house: House) -> Client:
    """A client with acks alone."""
    client = house.client(ext={"ack": True})
    client.connect(ext={"ack": 0}, advice={"timeout": 0})
    client.subscribe("/a")
    return client


def data_so_far(asked: Asked) -> list[Any]:
    """What came with the answer, if there was one."""
    return [] if asked.is_held else asked.data


def is_held(house: House) -> bool:
    return house.bayeux.state.guard.is_held("/a")


# Broken receivers


def test_a_channel_whose_receivers_all_break_down_is_held_until_an_operator_releases_it() -> None:
    house = house_of()
    watcher = house.connected()
    watcher.session.identity.role = "operator"
    watcher.subscribe("/sys/alert")
    clients = [receiver(house) for _ in range(3)]
    settle_in(house, *clients)
    break_down(house, *clients)
    (alert,) = watcher.connect().data
    assert (alert["kind"], alert["channel"]) == ("channel held back", "/a")
    assert alert["reason"].startswith("3 of 3 receivers refused ")
    assert house.keeper.held["/a"].reason == alert["reason"]
    before = len(codes(house))
    publish(house, "later")
    assert connect(clients[0]).data[-1:] != ["later"]
    assert len(codes(house)) == before
    house.bayeux.life.channel_holds.release("/a", "operator", "operator/ann")
    assert connect(clients[0]).data[-1] == "later"
    assert house.keeper.held == {}


@pytest.mark.slow
def test_a_channel_is_not_held_while_one_receiver_takes_what_others_refuse() -> None:
    house = house_of()
    good = acknowledging(house)
    bad = [receiver(house) for _ in range(6)]
    settle_in(house, good, *bad)
    for number in range(20):
        publish(house, {"number": number})
        for client in bad:
            hear(house, client, broken)
        assert connect(good).data == [{"number": number}]
        connect(good)
        house.advance(0.5)
    assert not is_held(house)


@pytest.mark.slow
def test_one_subject_cannot_stop_a_channel_however_many_sessions_it_has() -> None:
    house = house_of()
    quiet = acknowledging(house)
    bad = [receiver(house, session=f"joe/{number}") for number in range(1, 7)]
    settle_in(house, quiet, *bad)
    break_down(house, *bad)
    assert not is_held(house)


@pytest.mark.slow
def test_one_browser_cannot_stop_a_channel_however_many_sessions_it_has() -> None:
    house = house_of()
    browser = house.connected().browser
    bad = []
    for _ in range(6):
        client = house.client(browser=browser, ext={"ack": True, "delivery": True})
        connect(client)
        client.subscribe("/a")
        bad.append(client)
    settle_in(house, *bad)
    break_down(house, *bad)
    assert not is_held(house)


def test_holdbacks_of_all_receivers_do_not_hold_their_channel() -> None:
    house = house_of()
    bad = [receiver(house, session=f"eve{n}/1") for n in range(3)]
    settle_in(house, *bad)
    break_down(house, *bad, code=HOLDBACK)
    assert not is_held(house)


@pytest.mark.slow
def test_receivers_that_are_held_back_away_or_lost_do_not_count_for_a_channel() -> None:
    house = house_of()
    held, left, gone = (receiver(house, session=f"eve{n}/1") for n in range(3))
    house.bayeux.life.hold_back(held.session, "for a while", "operator", house.now)
    left.send({"channel": "/meta/disconnect"})
    house.turn()
    bad = [receiver(house) for _ in range(3)]
    house.advance(9)
    for client in bad:
        connect(client)
    house.advance(5)
    assert gone.session.dispatcher is not None
    assert gone.session.dispatcher.state is Contact.POLLING
    settle_in(house, *bad)
    break_down(house, *bad)
    assert is_held(house)


def test_the_guard_holds_a_channel_by_the_limits_of_its_options() -> None:
    limits = GuardLimits(window_s=12.0, min_receivers=1, min_messages=10, grace_s=1.0)
    house = house_of(guard=limits)
    client = receiver(house)
    settle_in(house, client)
    # The first is refused before the guard listens.
    break_down(house, client, seconds=5)
    assert not is_held(house)
    break_down(house, client, seconds=2)
    assert is_held(house)


def test_a_held_channel_still_flows_to_receivers_that_cannot_refuse() -> None:
    house = house_of()
    plain = house.connected()
    plain.subscribe("/a")
    oneway = receiver(house, ack=False, oneway=True)
    bad = [receiver(house) for _ in range(3)]
    settle_in(house, *bad)
    break_down(house, *bad)
    assert is_held(house)
    assert len(plain.connect().data) > 10
    asked = plain.connect()
    publish(house, "later")
    house.turn()
    assert asked.data == ["later"]
    assert connect(oneway, ack=None).data[-1] == "later"
    assert house.balances()


# Poison messages


@pytest.mark.slow
def test_malformed_publishes_become_dead_letters_and_their_channel_flows() -> None:
    house = house_of()
    pages = [receiver(house) for _ in range(5)]
    settle_in(house, *pages)
    eve = house.connected()
    poison: list[Any] = [None, 7, "x", [], True, None, 8]
    for data in poison:
        eve.publish("/a", data)
        for page in pages:
            hear(house, page, strict)
        house.advance(2.0)
    assert not is_held(house)
    house.connected().publish("/a", {"text": "hello"})
    assert [hear(house, page, strict)["data"] for page in pages] == [[{"text": "hello"}]] * 5
    assert len(data_of(house)) == len(poison) * len(pages)
    assert house.balances()


@pytest.mark.slow
@pytest.mark.parametrize("is_known", [False, True])
def test_strangers_cannot_hold_a_channel_whose_other_messages_pass(is_known: bool) -> None:
    house = house_of()
    pages = [receiver(house) for _ in range(3)]
    # They refuse everything, and are the majority.
    accomplices = [receiver(house) for _ in range(8)]
    strangers = [house.connected() for _ in range(8)]
    ann = house.connected()
    if is_known:
        for stranger in strangers:
            stranger.publish("/a", {"text": "hi"})
            for page in (*pages, *accomplices):
                hear(house, page, strict)
    for number in range(60):
        for stranger in strangers:
            stranger.publish("/a", number)
        ann.publish("/a", {"number": number})
        for client in accomplices:
            hear(house, client, broken)
        for page in pages:
            assert {"number": number} in hear(house, page, strict)["data"]
        house.advance(0.5)
        assert not is_held(house)
    assert house.balances()


# Probes


def held_house() -> tuple[House, list[Client]]:
    """Three receivers that broke down, for whom nothing waits yet."""
    house = house_of()
    clients = [receiver(house) for _ in range(3)]
    settle_in(house, *clients)
    break_down(house, *clients)
    assert is_held(house)
    for client in clients:
        house.bayeux.life.clear(client.session)
    return house, clients


@pytest.mark.slow
def test_a_held_channel_is_probed_with_one_message_for_one_receiver_after_growing_pauses() -> None:
    house, clients = held_house()
    publish(house, *range(10))
    times, begin = [], house.now
    for _ in range(600):
        house.advance(0.1)
        got = [hear(house, client, broken) for client in clients]
        tried = sum(len(each["data"]) for each in got)
        assert tried <= 1
        if tried:
            times.append(round(house.now - begin))
        for client in clients:
            house.bayeux.life.clock.touch(client.session, house.now)
    assert is_held(house)
    gaps = [after - before for before, after in pairwise(times)]
    assert gaps == sorted(gaps)
    assert gaps[:2] == [10, 20]
    probe = house.bayeux.state.guard.probes["/a"]
    assert probe.failures == len(times)


@pytest.mark.slow
def test_a_receiver_that_takes_the_probed_message_releases_the_channel_for_all() -> None:
    house, clients = held_house()
    watcher = house.connected()
    watcher.session.identity.role = "operator"
    watcher.subscribe("/sys/alert")
    held = [connect(client, advice={"timeout": 60_000}) for client in clients]
    publish(house, "first", "second")
    for _ in range(2):
        house.advance(6)
        watcher.connect(advice={"timeout": 0})
    (tried,) = [place for place, asked in enumerate(held) if data_so_far(asked)]
    assert held[tried].data == ["first"]
    assert is_held(house)
    assert connect(clients[tried]).data == ["second"]
    assert not is_held(house)
    house.turn()
    others = [asked.data for place, asked in enumerate(held) if place != tried]
    assert others == [["first", "second"]] * 2
    alert = watcher.connect().data[-1]
    assert (alert["kind"], alert["channel"]) == ("channel flows again", "/a")
    assert house.keeper.held == {}
    assert house.balances()


@pytest.mark.slow
def test_a_held_channel_is_probed_soon_with_a_message_of_another_publisher() -> None:
    house = house_of()
    pages = [receiver(house) for _ in range(3)]
    eve = house.connected()
    eve.publish("/a", {"text": "hi"})
    for page in pages:
        hear(house, page, strict)
    for number in range(40):
        eve.publish("/a", number)
        for page in pages:
            hear(house, page, strict)
        house.advance(0.5)
    # All that the guard saw is that everybody refuses a publisher whose messages had passed.
    assert is_held(house)
    for _ in range(60):
        house.advance(1)
        for page in pages:
            hear(house, page, strict)
    assert is_held(house)
    ann = house.connected()
    ann.publish("/a", {"text": "hello"})
    for _ in range(15):
        house.advance(0.1)
        for page in pages:
            hear(house, page, strict)
    assert not is_held(house)


@pytest.mark.slow
def test_a_probe_without_a_verdict_leaves_the_channel_held_and_another_receiver_is_probed() -> None:
    house, clients = held_house()
    publish(house, "first")
    got: dict[Client, list[int]] = {}
    times = []
    for _ in range(60):
        house.advance(1)
        for client in clients:
            # It processes what it got, and never finishes.
            asked = connect(client, delivery={"pending": got.get(client, [])})
            if asked.data:
                times.append(house.now)
                got[client] = [event["ext"]["delivery"]["seq"] for event in asked.events]
    assert len(got) == len(times) == 3
    assert [after - before for before, after in pairwise(times)] == [15, 15]
    assert is_held(house)
    assert house.balances()


@pytest.mark.slow
def test_a_publish_with_refuse_held_is_refused_while_its_channel_is_held() -> None:
    house, clients = held_house()
    ann = house.connected()
    asked = {"delivery": {"refuseHeld": True}}
    assert ann.publish("/a", "urgent", ext=asked).reply["error"] == HELD_BACK
    assert ann.publish("/a", "patient", ext={"delivery": {"refuseHeld": False}}).reply["successful"]
    assert ann.publish("/b", "urgent", ext=asked).reply["successful"]
    house.bayeux.life.channel_holds.release("/a", "operator", "operator/ann")
    assert ann.publish("/a", "urgent", ext=asked).reply["successful"]
    assert connect(clients[0]).data[-2:] == ["patient", "urgent"]
    wrong = ann.publish("/a", "x", ext={"delivery": {"refuseHeld": "yes"}}).reply["error"]
    assert wrong == "400:user.publish,refuseHeld:delivery_invalid"
