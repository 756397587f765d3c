"""What a subscriber may ask for, and that nothing it asks for is ignored."""

from typing import Any

import pytest

from holdfast.bayeux.known_options import QosInvalid
from holdfast.bayeux.subscribe_qos import PLAIN, SubscribeQos
from holdfast.extensions.delivery_wire import DeliveryWire
from tests.unit.bayeux.harness import Client, House, Json


def of(asked: Any, *, is_kept: bool = False) -> SubscribeQos:
    return SubscribeQos.of(asked, is_kept=is_kept)


def ask(client: Client, *channels: str, **options: Any) -> Json:
    message = {"channel": "/meta/subscribe", "subscription": list(channels)}
    return client.send({**message, "ext": {"delivery": options}}).reply


def test_nothing_asked_for_is_an_ordinary_subscription() -> None:
    assert of({}) == of({"oneway": False}) == PLAIN
    assert of({"oneway": True}).oneway


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        (None, "delivery"),
        (True, "delivery"),
        ([], "delivery"),
        ({"oneway": "true"}, "oneway"),
        ({"notify": 1}, "notify"),
        ({"persistent": "yes"}, "persistent"),
        ({"filter": 5}, "filter"),
        ({"filter": ["data > 5"]}, "filter"),
        ({"local": 1}, "local"),
        ({"newestOnly": 1}, "newestOnly"),
        ({"destinations": []}, "destinations"),
        ({"priority": 1}, "priority"),
    ],
)
def test_what_makes_no_sense_or_would_not_be_done_is_named(asked: Any, named: str) -> None:
    with pytest.raises(QosInvalid, match=f"^{named}$"):
        of(asked)


@pytest.mark.parametrize(
    "asked",
    [
        {"history": None, "filter": None},
        {"initialUpdate": False, "local": True, "newestOnly": False},
        {"notify": True, "oneway": None},
        {"persistent": None},
        {"verdicts": [{"seq": 1, "state": "OK"}], "pending": []},
    ],
    ids=repr,
)
def test_what_happens_anyway_may_be_asked_for(asked: Any) -> None:
    assert of(asked) == PLAIN


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_subscription_lasts_as_long_as_its_session_and_not_otherwise(is_kept: bool) -> None:
    assert of({"persistent": is_kept}, is_kept=is_kept) == PLAIN
    with pytest.raises(QosInvalid, match=r"^persistent$"):
        of({"persistent": not is_kept}, is_kept=is_kept)


def test_a_refused_option_subscribes_nothing() -> None:
    house = House(DeliveryWire)
    client = house.client()
    reply = ask(client, "/a", "/b", priority=5)
    assert reply["error"] == "400:user.illegalArgument,priority:delivery_invalid"
    assert client.session.subscriptions == set()
    assert client.publish("/a", 1).data == []


def test_a_refused_option_leaves_earlier_subscriptions_as_they_were() -> None:
    house = House(DeliveryWire)
    client = house.client(ext={"delivery": True})
    assert ask(client, "/a", oneway=True)["successful"]
    assert not ask(client, "/a", oneway=False, newestOnly=1)["successful"]
    assert client.session.subscription_qos == {"/a": SubscribeQos(oneway=True)}


def test_subscriptions_of_a_named_session_are_kept_as_is_asked() -> None:
    house = House(DeliveryWire)
    named = house.client(ext={"delivery": {"session": "joe/1"}})
    asked = named.send(
        {
            "channel": "/meta/subscribe",
            "subscription": "/a",
            "ext": {"delivery": {"persistent": True}},
        }
    )
    house.turn()
    assert asked.reply["successful"]
    error = "400:user.illegalArgument,persistent:delivery_invalid"
    assert ask(house.client(), "/a", persistent=True)["error"] == error
