"""Calls of services with long answers: given over many turns, and charged to their senders."""

from typing import Any

import pytest

from holdfast.bayeux.wire.caller import Caller
from holdfast.extensions.delivery_wire import DeliveryWire
from holdfast.extensions.request import Request
from holdfast.settings import ChannelSettings
from tests.unit.bayeux.harness import Asked, Client, Json, Server

pytestmark = pytest.mark.untraced

TOPICS, PRESENCE = "/service/topics", "/service/presence"
RULES = {
    "/t/**": ChannelSettings(topic=True, destroy_delay=-1, history=1),
    "/room/**": ChannelSettings(presence=True),
}
MANY = 100
# Calls that are answered with a hundred items.
CALLS: list[Json] = [
    {"channel": TOPICS, "data": {"list": "/t/*"}},
    {"channel": TOPICS, "data": {"get": "/t/*"}},
    {"channel": TOPICS, "data": {"get": "/t/*", "filter": "data >= 0"}},
    {"channel": TOPICS, "data": {"erase": "/t/*"}},
    {"channel": TOPICS, "data": {"erase": "/t/*", "history": {"numEntries": -1}}},
    {"channel": PRESENCE, "data": {"channel": "/room/a"}},
]
each_call = pytest.mark.parametrize("call", CALLS, ids=lambda call: str(call["data"]))


def busy(**options: Any) -> Server:
    """A server with a hundred topics, each with a message, and a hundred members of a room."""
    here = Server(DeliveryWire, channels=RULES, **options)
    for n in range(MANY):
        here.for_extensions.publish(f"/t/{n:02}", n)
        here.client().subscribe("/room/a")
    here.turn()
    return here


def answer(asked: Asked, client: Client) -> Any:
    client.server.turn()
    (found,) = [each for each in asked.elements + client.connect().elements if "data" in each]
    assert found["successful"]
    return found["data"]


@pytest.mark.slow
@each_call
def test_a_long_answer_is_the_same_over_many_turns(call: Json) -> None:
    answers = []
    for is_over in (False, True):
        here = busy(is_turn_over=lambda is_over=is_over: is_over)
        client = here.client()
        asked = client.send(call)
        turns = 0
        while here.go_on() or here.bayeux.state.backlog:
            here.flush()
            turns += 1
        assert turns > 1 if is_over else turns <= 1
        answers.append(answer(asked, client))
    assert _without_times(answers[0]) == _without_times(answers[1])


def _without_times(answer: Json) -> Json:
    """The ids and times of two servers differ."""
    if "messages" in answer and isinstance(answer["messages"], list):
        return {**answer, "messages": [each["data"] for each in answer["messages"]]}
    if "members" in answer:
        return {**answer, "members": [each["session"] for each in answer["members"]]}
    return answer


@each_call
def test_the_answer_to_a_long_call_travels_with_the_reply(call: Json) -> None:
    here = busy(is_turn_over=lambda: True)
    asked = here.client().send(call)
    assert asked.is_held
    here.turn()
    assert ["data" in each for each in asked.elements] == [True, False]


@each_call
def test_others_have_their_turn_while_a_long_answer_is_made(call: Json) -> None:
    here = busy(is_turn_over=lambda: True)
    client, other = here.client(), here.client()
    asked = client.send(call)
    here.go_on()
    assert other.publish("/plain", 1).reply["successful"]
    assert asked.is_held
    assert answer(asked, client)


@each_call
def test_the_next_call_of_a_session_waits_until_the_one_before_is_answered(call: Json) -> None:
    here = busy(is_turn_over=lambda: True)
    client = here.client()
    first, second = client.send(call), client.send(call)
    assert first.is_held
    while first.is_held:
        assert second.is_held
        here.go_on()
        here.flush()
        here.keeper.turn()


def _charged(here: Server, call: Json) -> list[bool]:
    """Whether each of three calls from one address is answered."""
    client = here.client(caller=Caller("203.0.113.7", network="203.0.113.7"))
    return [_is_answered(here, client.send(call)) for _ in range(3)]


def _is_answered(here: Server, asked: Asked) -> bool:
    here.turn()
    error = asked.replies[-1].get("error")
    assert error in (None, "429:requests:budget_exceeded")
    return error is None


@pytest.mark.parametrize(
    "call", [each for each in CALLS if "erase" not in each["data"]], ids=lambda c: str(c["data"])
)
def test_an_answer_is_charged_to_its_address_by_what_it_returns(call: Json) -> None:
    # The bucket has as many requests as two answers cost.
    assert _charged(busy(budget_requests=2), call) == [True, True, False]


def test_an_erasure_is_charged_by_what_it_erases() -> None:
    here = busy(budget_requests=1)
    call = {"channel": TOPICS, "data": {"erase": "/t/*", "limit": 50}}
    client = here.client(caller=Caller("203.0.113.7", network="203.0.113.7"))
    for _ in range(2):
        assert _is_answered(here, client.send(call))
    assert not _is_answered(here, client.send(CALLS[-1]))


def test_a_remote_call_asks_many_filters_over_several_turns() -> None:
    here = Server(DeliveryWire, Request, is_turn_over=lambda: True)
    clients = [here.connected() for _ in range(3)]
    for number, client in enumerate(clients):
        options = {"filter": f"data > {number}"}
        client.send(
            {
                "channel": "/meta/subscribe",
                "subscription": "/add",
                "ext": {"delivery": options},
            }
        )
    caller = here.client(ext={"request": True})
    asked = caller.send({"channel": "/service/add", "data": 2, "id": "7"})
    turns = 0
    while asked.is_held:
        assert here.bayeux.state.requests.outstanding == 0
        here.go_on()
        turns += 1
    assert turns == 2
    assert here.bayeux.state.requests.outstanding == 1
    assert [client.session.queue.count for client in clients] == [1, 1, 0]
