"""The options of a subscribe, none of which is ignored."""

from typing import Any

import pytest

from holdfast.bayeux.state.subscription_details import qos_of_subscriptions
from holdfast.bayeux.wire.known_options import QosInvalid
from holdfast.bayeux.wire.subscribe_qos import PLAIN, SubscribeQos
from holdfast.extensions.delivery_wire import DeliveryWire
from tests.unit.bayeux.harness import Client, Json, Server


def of(asked: Any, *, is_kept: bool = False) -> SubscribeQos:
    return SubscribeQos.of(asked, is_kept=is_kept)


def ask(client: Client, *channels: str, **options: Any) -> Json:
    message = {"channel": "/meta/subscribe", "subscription": list(channels)}
    return client.send({**message, "ext": {"delivery": options}}).reply


def test_a_subscribe_without_options_is_plain() -> None:
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
        ({"responds": "no"}, "responds"),
        ({"destinations": []}, "destinations"),
        ({"priority": 1}, "priority"),
    ],
)
def test_an_invalid_or_unknown_option_is_refused_by_its_name(asked: Any, named: str) -> None:
    with pytest.raises(QosInvalid, match=f"^{named}$"):
        of(asked)


@pytest.mark.parametrize(
    "asked",
    [
        {"history": None, "filter": None},
        {"initialUpdate": False, "local": True, "newestOnly": False},
        {"notify": True, "oneway": None, "responds": True},
        {"persistent": None},
        {"verdicts": [{"seq": 1, "state": "OK"}], "pending": []},
    ],
    ids=repr,
)
def test_options_that_change_nothing_are_accepted(asked: Any) -> None:
    assert of(asked) == PLAIN


@pytest.mark.parametrize("is_kept", [True, False])
def test_the_option_persistent_must_agree_with_the_session(is_kept: bool) -> None:
    assert of({"persistent": is_kept}, is_kept=is_kept) == PLAIN
    with pytest.raises(QosInvalid, match=r"^persistent$"):
        of({"persistent": not is_kept}, is_kept=is_kept)


def test_a_subscribe_with_a_refused_option_adds_no_subscription() -> None:
    server = Server(DeliveryWire)
    client = server.client()
    reply = ask(client, "/a", "/b", priority=5)
    assert reply["error"] == "400:user.illegalArgument,priority:delivery_invalid"
    assert client.session.subscriptions == set()
    assert client.publish("/a", 1).data == []


def test_a_subscribe_with_a_refused_option_leaves_earlier_subscriptions_unchanged() -> None:
    server = Server(DeliveryWire)
    client = server.client(ext={"delivery": True})
    assert ask(client, "/a", oneway=True)["successful"]
    assert not ask(client, "/a", oneway=False, newestOnly=1)["successful"]
    assert qos_of_subscriptions(client.session) == {"/a": SubscribeQos(oneway=True)}


def test_a_persistent_subscription_is_accepted_for_named_sessions_only() -> None:
    server = Server(DeliveryWire)
    named = server.client(ext={"delivery": {"session": "joe/1"}})
    asked = named.send(
        {
            "channel": "/meta/subscribe",
            "subscription": "/a",
            "ext": {"delivery": {"persistent": True}},
        }
    )
    server.turn()
    assert asked.reply["successful"]
    error = "400:user.illegalArgument,persistent:delivery_invalid"
    assert ask(server.client(), "/a", persistent=True)["error"] == error
