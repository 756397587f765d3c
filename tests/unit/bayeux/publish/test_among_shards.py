"""What one of several shards cannot carry out alone is refused, and names what was asked."""

from typing import Any

import pytest

from holdfast.extensions.request import Request
from tests.unit.bayeux.harness import Client, server_of
from tests.unit.bayeux.publish.shards import World


@pytest.fixture
def client() -> Client:
    return World(2, Request).client(0, ext={"delivery": {}})


def test_a_server_alone_accepts_what_one_of_several_refuses() -> None:
    client = server_of().client(ext={"delivery": {}})
    asked = client.publish("/news", 1, ext={"delivery": {"topic": {"readonly": True}}})
    client.server.turn()
    assert asked.reply["successful"]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("topic", {"readonly": True}),
        ("administrative", True),
        ("refuseHeld", True),
    ],
)
@pytest.mark.parametrize("delay", [0, 1000])
def test_options_that_need_one_shard_are_refused(
    client: Client, option: str, value: Any, delay: int
) -> None:
    if delay and option in ("administrative", "refuseHeld"):
        # It has no delay.
        delay = 0
    asked = client.publish("/news", 1, ext={"delivery": {option: value, "delay": delay}})
    client.server.turn()
    error = f"400:internal.notImplemented,ext.delivery.{option}:not_supported"
    assert asked.reply["error"] == error


def test_without_requests_messages_to_unknown_services_are_ignored_as_ever() -> None:
    asked = World(2).client(0).publish("/service/add", [1, 2])
    assert asked.reply["successful"]


def test_topics_that_may_be_elsewhere_cannot_be_asked_about(client: Client) -> None:
    for data in ({"state": "/home/a"}, {"list": "/**"}, {"erase": "/home/a"}):
        assert "/service/topics" in client.publish("/service/topics", data).reply["error"]
    for data in ({"state": "/home/b"}, {"list": "/news"}, {"get": "/home/a"}):
        assert client.publish("/service/topics", data).replies[-1]["successful"]
    assert client.publish("/service/topics", "nothing").replies[-1]["successful"]
