"""The chat: its members see who is there, and can send messages to one person alone."""

import pytest

from holdfast.extensions.chat import LIST, PRIVATE, ROOMS, UNKNOWN, Chat
from tests.unit.bayeux.harness import Client, Json, Server, Socket, Wire, server_of

LOBBY = ROOMS + "lobby"


def server() -> Server:
    here = server_of()
    Chat(here.for_extensions)
    return here


def enter(here: Server, name: str, *rooms: str) -> Client:
    """A client without reliable messages, which names its subject only."""
    client = here.guest(socket=Socket())
    client.handshake(ext={"delivery": {"session": name, "oneway": True}}, wire=Wire())
    client.connect()
    client.subscribe(*(rooms or (LOBBY,)))
    client.connect(advice={"timeout": 30_000})
    client.hear()
    return client


def data_on(client: Client, channel: str) -> list[Json]:
    client.server.turn()
    return [each["data"] for each in client.hear() if each["channel"] == channel and "data" in each]


def test_a_member_may_see_who_is_in_its_room() -> None:
    here = server()
    enter(here, "ada")
    bob = enter(here, "bob")
    bob.publish("/service/presence", {"channel": LOBBY})
    (answer,) = data_on(bob, "/service/presence")
    members = [(each["subject"], each["state"]) for each in answer["members"]]
    assert members == [("ada", "here"), ("bob", "here")]


def test_a_client_that_returns_can_list_its_rooms() -> None:
    here = server()
    enter(here, "bob/1", LOBBY, "/chat/typing/lobby", ROOMS + "*", ROOMS + "__proto__")
    again = here.guest(socket=Socket())
    again.handshake(ext={"delivery": {"session": "bob/1", "oneway": True}}, wire=Wire())
    again.connect()
    again.publish(LIST, {})
    again.connect(advice={"timeout": 0})
    (answer,) = data_on(again, LIST)
    assert sorted(answer["rooms"]) == ["__proto__", "lobby"]


def test_the_list_of_rooms_has_fifty_at_most() -> None:
    here = server()
    ada = enter(here, "ada", *(f"{ROOMS}{n}" for n in range(60)))
    ada.publish(LIST, {})
    assert len(data_on(ada, LIST)[-1]["rooms"]) == 50


@pytest.mark.parametrize("name", ["bob", "constructor", "toString", "None"])
def test_a_private_message_reaches_its_receiver_and_its_sender_alone(name: str) -> None:
    here = server()
    ada, bob, eve = enter(here, "ada"), enter(here, name), enter(here, "eve")
    ada.publish(PRIVATE, {"id": "1", "to": name, "text": "hush"})
    words = {"id": "1", "to": name, "text": "hush", "from": "ada"}
    assert data_on(bob, PRIVATE) == [words]
    assert data_on(ada, PRIVATE) == [{**words, "receivers": 1}]
    assert data_on(eve, PRIVATE) == []


def test_a_private_message_reaches_all_sessions_of_its_receiver_in_the_chat() -> None:
    here = server()
    ada, other = enter(here, "ada"), enter(here, "ada")
    enter(here, "ada", "/elsewhere")
    ada.publish(PRIVATE, {"id": "1", "to": "ada", "text": "note"})
    assert [each["receivers"] for each in data_on(ada, PRIVATE)] == [2]
    assert [each["text"] for each in data_on(other, PRIVATE)] == ["note"]


@pytest.mark.parametrize("name", ["bob", "eve", "anonymous"])
def test_the_sender_of_a_private_message_learns_that_nobody_in_the_chat_has_the_name(
    name: str,
) -> None:
    here = server()
    ada = enter(here, "ada")
    enter(here, "bob").disconnect()
    enter(here, "eve", "/elsewhere")
    ada.publish(PRIVATE, {"id": "1", "to": name, "text": "hush"})
    assert [words["error"] for words in data_on(ada, PRIVATE)] == [UNKNOWN]


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
def test_a_malformed_private_message_is_refused(data: object) -> None:
    ada = enter(server(), "ada")
    assert refusal(ada, data) == "403:private:publish_denied"


def test_a_client_outside_the_chat_or_without_a_name_cannot_send_private_messages() -> None:
    here = server()
    enter(here, "ada")
    words = {"id": "1", "to": "ada", "text": "hush"}
    assert refusal(enter(here, "eve", "/elsewhere"), words) == "403:private:publish_denied"
    nobody = here.connected()
    nobody.subscribe(LOBBY)
    assert refusal(nobody, words) == "403:private:publish_denied"


def refusal(client: Client, data: object) -> object:
    reply: Json = client.publish(PRIVATE, data).reply
    return reply["error"]
