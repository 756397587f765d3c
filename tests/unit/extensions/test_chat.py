"""Who chats sees who else is there, and can speak to one person alone."""

from functools import partial

import pytest

from holdfast.extensions.ack import Ack
from holdfast.extensions.chat import LIST, PRIVATE, ROOMS, UNKNOWN, Chat
from holdfast.extensions.delivery_wire import DeliveryWire
from tests.unit.bayeux.harness import Client, House, Json, Socket, Wire

LOBBY = ROOMS + "lobby"


def house() -> House:
    here = House(DeliveryWire, partial(Ack, announces_batch=False))
    Chat(here.server)
    return here


def enter(here: House, name: str, *rooms: str) -> Client:
    """A client without reliable messages, which names its subject only."""
    client = here.guest(socket=Socket())
    client.handshake(ext={"delivery": {"session": name, "oneway": True}}, wire=Wire())
    client.connect()
    client.subscribe(*(rooms or (LOBBY,)))
    client.connect(advice={"timeout": 30_000})
    client.hear()
    return client


def told(client: Client, channel: str) -> list[Json]:
    client.house.turn()
    return [each["data"] for each in client.hear() if each["channel"] == channel and "data" in each]


def test_everybody_may_see_who_is_in_a_room() -> None:
    here = house()
    enter(here, "ada")
    bob = enter(here, "bob")
    bob.publish("/service/presence", {"channel": LOBBY})
    (answer,) = told(bob, "/service/presence")
    members = [(each["subject"], each["state"]) for each in answer["members"]]
    assert members == [("ada", "here"), ("bob", "here")]


def test_who_comes_back_is_told_of_its_rooms() -> None:
    here = house()
    enter(here, "bob/1", LOBBY, "/chat/typing/lobby", ROOMS + "*", ROOMS + "__proto__")
    again = here.guest(socket=Socket())
    again.handshake(ext={"delivery": {"session": "bob/1", "oneway": True}}, wire=Wire())
    again.connect()
    again.publish(LIST, {})
    again.connect(advice={"timeout": 0})
    (answer,) = told(again, LIST)
    assert sorted(answer["rooms"]) == ["__proto__", "lobby"]


def test_who_is_in_too_many_rooms_is_not_told_of_all() -> None:
    here = house()
    ada = enter(here, "ada", *(f"{ROOMS}{n}" for n in range(60)))
    ada.publish(LIST, {})
    assert len(told(ada, LIST)[-1]["rooms"]) == 50


@pytest.mark.parametrize("name", ["bob", "constructor", "toString", "None"])
def test_words_for_one_person_reach_that_person_alone(name: str) -> None:
    here = house()
    ada, bob, eve = enter(here, "ada"), enter(here, name), enter(here, "eve")
    ada.publish(PRIVATE, {"id": "1", "to": name, "text": "hush"})
    words = {"id": "1", "to": name, "text": "hush", "from": "ada"}
    assert told(bob, PRIVATE) == [words]
    assert told(ada, PRIVATE) == [{**words, "receivers": 1}]
    assert told(eve, PRIVATE) == []


def test_words_for_one_person_reach_all_of_its_sessions_in_the_chat() -> None:
    here = house()
    ada, other = enter(here, "ada"), enter(here, "ada")
    enter(here, "ada", "/elsewhere")
    ada.publish(PRIVATE, {"id": "1", "to": "ada", "text": "note"})
    assert [each["receivers"] for each in told(ada, PRIVATE)] == [2]
    assert [each["text"] for each in told(other, PRIVATE)] == ["note"]


@pytest.mark.parametrize("name", ["bob", "eve", "anonymous"])
def test_their_sender_hears_that_nobody_here_has_this_name(name: str) -> None:
    here = house()
    ada = enter(here, "ada")
    enter(here, "bob").disconnect()
    enter(here, "eve", "/elsewhere")
    ada.publish(PRIVATE, {"id": "1", "to": name, "text": "hush"})
    assert [words["error"] for words in told(ada, PRIVATE)] == [UNKNOWN]


@pytest.mark.parametrize(
    "data",
    [
        "hush",
        {"id": "1", "to": "ada", "text": "x" * 4001},
        {"id": "1" * 4001, "to": "ada", "text": "hush"},
        {"id": 1, "to": "ada", "text": "hush"},
        {"id": "1", "to": [], "text": "hush"},
    ],
    ids=lambda data: repr(data)[:40],
)
def test_nonsense_is_refused(data: object) -> None:
    ada = enter(house(), "ada")
    assert refusal(ada, data) == "403:private:publish_denied"


def test_who_is_not_in_the_chat_or_has_no_name_cannot_whisper() -> None:
    here = house()
    enter(here, "ada")
    words = {"id": "1", "to": "ada", "text": "hush"}
    assert refusal(enter(here, "eve", "/elsewhere"), words) == "403:private:publish_denied"
    nobody = here.connected()
    nobody.subscribe(LOBBY)
    assert refusal(nobody, words) == "403:private:publish_denied"


def refusal(client: Client, data: object) -> object:
    reply: Json = client.publish(PRIVATE, data).reply
    return reply["error"]
