"""Channels that most receivers refuse are held back."""

from app.delivery.dispatcher import State as Contact
from app.delivery.guard import GuardLimits
from tests.unit.bayeux.harness import Client, House
from tests.unit.extensions.delivering import connect, house_of, no, publish, receiver


def refuse_all(house: House, *clients: Client, count: int = 5) -> None:
    """Messages are published that none of these can take."""
    publish(house, *range(count))
    house.turn()
    for client in clients:
        asked = connect(client)
        house.turn()
        refusals = [no(event, "user.update.error") for event in asked.events]
        assert len(refusals) >= count
        connect(client, *refusals)
        house.turn()


def acknowledging(house: House) -> Client:
    """A client of the stock kind, that only acknowledges batches."""
    client = house.client(ext={"ack": True})
    client.connect(ext={"ack": 0}, advice={"timeout": 0})
    client.subscribe("/a")
    return client


def test_a_channel_that_most_receivers_refuse_is_held_back() -> None:
    house = house_of()
    watcher = house.connected()
    watcher.session.role = "operator"
    watcher.subscribe("/sys/alert")
    clients = [receiver(house) for _ in range(3)]
    refuse_all(house, *clients)
    (alert,) = watcher.connect().data
    assert alert["channel"] == "/a"
    assert alert["reason"] == "3 of 3 receivers refused 11 of 11 messages"
    assert house.keeper.held["/a"].reason == alert["reason"]
    publish(house, "later")
    assert connect(clients[0]).data == []
    house.bayeux.release_channel("/a")
    assert connect(clients[0]).data == ["later"]
    assert house.keeper.held == {}


def test_receivers_that_only_acknowledge_speak_for_a_channel_too() -> None:
    house = house_of()
    good = [acknowledging(house) for _ in range(3)]
    bad = [receiver(house) for _ in range(3)]
    refuse_all(house, *bad)
    assert not house.bayeux.guard.held
    connect(good[0])
    publish(house, "later")
    assert [connect(client).data[-1:] for client in good] == [["later"]] * 3
    worse = receiver(house)
    refuse_all(house, *bad, worse)
    assert house.bayeux.guard.held["/a"].reason.startswith("4 of 7 receivers")
    publish(house, "held back")
    assert connect(good[1], ack=good[1].session.queue.batch).data == []


def test_one_subject_cannot_stop_a_channel_however_many_sessions_it_has() -> None:
    house = house_of()
    acknowledging(house)
    bad = [receiver(house, session=f"joe/{number}") for number in range(1, 7)]
    refuse_all(house, *bad)
    assert not house.bayeux.guard.held


def test_one_browser_cannot_stop_a_channel_however_many_sessions_it_has() -> None:
    house = house_of()
    acknowledging(house)
    browser = house.connected().browser
    bad = []
    for _ in range(6):
        client = house.client(browser=browser, ext={"ack": True, "delivery": True})
        connect(client)
        client.subscribe("/a")
        bad.append(client)
    refuse_all(house, *bad)
    assert not house.bayeux.guard.held


def test_receivers_that_get_nothing_now_do_not_speak_for_a_channel() -> None:
    house = house_of()
    held, left, gone = (receiver(house, session=f"eve{n}/1") for n in range(3))
    house.bayeux.hold_back(held.session, "for a while", "operator")
    left.send({"channel": "/meta/disconnect"})
    house.turn()
    bad = [receiver(house) for _ in range(3)]
    house.advance(9)
    for client in bad:
        connect(client)
    house.advance(5)
    assert gone.session.dispatcher is not None
    assert gone.session.dispatcher.state is Contact.POLLING
    refuse_all(house, *bad)
    assert house.bayeux.guard.is_held("/a")


def test_how_many_must_refuse_how_much_is_the_operators_choice() -> None:
    house = house_of(guard=GuardLimits(window_s=5.0, min_receivers=1, min_messages=7))
    client = receiver(house)
    refuse_all(house, client, count=6)
    house.advance(5)
    refuse_all(house, client, count=6)
    assert not house.bayeux.guard.held
    refuse_all(house, client, count=1)
    assert house.bayeux.guard.is_held("/a")


def test_nothing_is_held_back_from_receivers_that_cannot_refuse() -> None:
    house = house_of()
    plain = house.connected()
    plain.subscribe("/a")
    oneway = receiver(house, ack=False, oneway=True)
    refuse_all(house, *(receiver(house) for _ in range(3)))
    assert house.bayeux.guard.is_held("/a")
    assert plain.connect().data == list(range(5))
    asked = plain.connect()
    publish(house, "later")
    house.turn()
    assert asked.data == ["later"]
    assert connect(oneway, ack=None).data[-1] == "later"
    assert house.balances()
