"""Who chats hears who else is there, and can speak to one person alone."""

from collections.abc import Callable
from functools import partial

import pytest

from holdfast.bayeux.rights import Denial, SecurityPolicy
from holdfast.bayeux.sessions import Session
from holdfast.extensions.ack import Ack
from holdfast.extensions.chat import HERE, MEMBERS, PRIVATE, ROOMS, UNKNOWN, Chat
from holdfast.extensions.delivery import Delivery
from tests.unit.bayeux.harness import Client, House, Json, Socket, Wire

LOBBY = "lobby"


class Pauses:
    """What waits for time to pass."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[float], None]] = []
        self.seconds: list[float] = []

    def __call__(self, seconds: float, done: Callable[[float], None]) -> None:
        self.seconds.append(seconds)
        self.waiting.append(done)

    def pass_by(self, house: House, times: int = 1) -> None:
        for _ in range(times):
            waiting, self.waiting = self.waiting, []
            for done in waiting:
                done(house.now)
            house.turn()


class Room:
    """A server with one room, and the people in it."""

    def __init__(self) -> None:
        self.pauses = Pauses()
        self.house = House(
            Delivery, partial(Ack, announces_batch=False), partial(Chat, wait=self.pauses)
        )

    def enter(self, name: str, ext: Json | None = None) -> Client:
        client = self.house.guest(socket=Socket())
        client.handshake(ext=ext, wire=Wire())
        client.connect()
        client.subscribe(ROOMS + LOBBY, MEMBERS + LOBBY)
        client.connect(advice={"timeout": 30_000})
        client.publish(HERE, {"name": name})
        self.look()
        return client

    def enter_as_named(self, name: str) -> Client:
        return self.enter("", {"delivery": {"session": f"{name}/1"}})

    def look(self, times: int = 1) -> None:
        self.pauses.pass_by(self.house, times)


def told(client: Client, channel: str) -> list[Json]:
    return [each["data"] for each in client.hear() if each["channel"] == channel and "data" in each]


def members(client: Client) -> list[tuple[str, str]]:
    """As the latest news has them."""
    news = told(client, MEMBERS + LOBBY)[-1]
    return [(member["name"], member["state"]) for member in news["members"]]


def test_everybody_hears_who_is_there_newcomers_too() -> None:
    room = Room()
    ada, bob = room.enter("ada"), room.enter("bob")
    assert members(ada) == members(bob) == [("ada", "here"), ("bob", "here")]


def test_nothing_is_told_that_is_known() -> None:
    room = Room()
    ada = room.enter("ada")
    ada.hear()
    room.look(10)
    assert ada.hear() == []


def test_who_says_it_again_and_again_makes_no_more_news_than_one() -> None:
    room = Room()
    ada, bob = room.enter("ada"), room.enter("bob")
    ada.hear()
    for _ in range(20):
        bob.publish(HERE, {"name": "bob"})
    room.look()
    assert len(told(ada, MEMBERS + LOBBY)) == 1
    assert len(room.pauses.waiting) == 1


def test_who_is_in_too_many_rooms_is_not_shown_in_all() -> None:
    room = Room()
    ada = room.enter("ada")
    ada.subscribe(*(f"{ROOMS}{n}" for n in range(60)))
    ada.publish(HERE, {"name": "ada"})
    room.house.turn()
    assert len(told(ada, HERE)[-1]["rooms"]) == 50


def test_of_a_crowd_some_are_named_and_the_others_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holdfast.extensions.chat._MOST_NAMED", 2)
    room = Room()
    room.enter("cleo")
    room.enter("bob")
    ada = room.enter("ada")
    news = told(ada, MEMBERS + LOBBY)[-1]
    assert ([member["name"] for member in news["members"]], news["others"]) == (["ada", "bob"], 1)


def test_a_crowd_is_looked_at_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    room = Room()
    room.enter("ada")
    one = room.pauses.seconds[-1]
    monkeypatch.setattr("holdfast.extensions.chat._MOST_A_LOOK", 1)
    room.enter("bob")
    assert room.pauses.seconds[-1] == 3 * one


def test_nobody_else_says_who_is_there() -> None:
    room = Room()
    ada, eve = room.enter("ada"), room.enter("eve")
    ada.hear()
    reply = eve.publish(MEMBERS + LOBBY, {"members": [], "others": 0}).reply
    assert reply["error"] == "403:denied_by_security_policy:publish_denied"
    room.house.turn()
    assert told(ada, MEMBERS + LOBBY) == []


def test_who_leaves_is_there_no_more() -> None:
    room = Room()
    ada, bob = room.enter("ada"), room.enter("bob")
    bob.disconnect()
    room.look()
    assert members(ada) == [("ada", "here")]


def test_who_holds_no_connect_for_some_looks_is_away() -> None:
    room = Room()
    ada, bob = room.enter("ada"), room.enter_as_named("bob")
    ada.hear()
    assert bob.socket is not None
    room.house.close(bob.socket)
    room.look(7)
    assert ada.hear() == []
    room.look(2)
    assert members(ada) == [("ada", "here"), ("bob", "away")]


def test_it_is_told_who_is_held_back() -> None:
    room = Room()
    ada, bob = room.enter("ada"), room.enter_as_named("bob")
    room.house.bayeux.life.hold_back(bob.session, "a break", "operator", room.house.now)
    room.look()
    assert members(ada) == [("ada", "here"), ("bob", "held")]


def test_it_is_told_how_many_words_wait_and_nothing_else() -> None:
    room = Room()
    ada, bob = room.enter("ada"), room.enter_as_named("bob")
    assert bob.socket is not None
    room.house.close(bob.socket)
    room.look(9)
    ada.publish(ROOMS + LOBBY, {"text": "are you there?"})
    ada.publish(PRIVATE, {"id": "1", "to": "bob", "text": "hush"})
    ada.hear()
    room.look(9)
    news = told(ada, MEMBERS + LOBBY)[-1]
    assert news["members"][1] == {"name": "bob", "state": "away", "waiting": 2}
    room.look(9)
    assert told(ada, MEMBERS + LOBBY) == []


def test_who_comes_back_is_told_of_its_rooms() -> None:
    room = Room()
    room.enter_as_named("bob")
    again = room.house.guest(socket=Socket())
    again.handshake(ext={"delivery": {"session": "bob/1"}}, wire=Wire())
    again.connect()
    again.publish(HERE, {})
    again.connect(advice={"timeout": 0})
    room.house.turn()
    assert told(again, HERE)[-1] == {"rooms": [LOBBY]}


def test_one_name_is_one_member_and_here_if_one_of_its_sessions_is() -> None:
    room = Room()
    ada, gone = room.enter("ada"), room.enter("ada")
    assert gone.socket is not None
    room.house.close(gone.socket)
    room.look(10)
    assert members(ada) == [("ada", "here")]


def test_words_for_one_person_reach_that_person_alone() -> None:
    room = Room()
    ada, bob, eve = room.enter("ada"), room.enter("bob"), room.enter("eve")
    ada.publish(PRIVATE, {"id": "1", "to": "bob", "text": "hush"})
    room.house.turn()
    words = {"id": "1", "to": "bob", "text": "hush", "from": "ada"}
    assert told(bob, PRIVATE) == [words]
    assert told(ada, PRIVATE) == [{**words, "receivers": 1}]
    assert told(eve, PRIVATE) == []


def test_their_sender_hears_that_nobody_has_this_name() -> None:
    room = Room()
    ada = room.enter("ada")
    ada.publish(PRIVATE, {"id": "1", "to": "bob", "text": "hush"})
    room.house.turn()
    assert [words["error"] for words in told(ada, PRIVATE)] == [UNKNOWN]


@pytest.mark.parametrize(
    ("channel", "data"),
    [
        (HERE, None),
        (HERE, {"name": "<b>"}),
        (HERE, {"name": 5}),
        (PRIVATE, "hush"),
        (PRIVATE, {"id": "1", "to": "ada", "text": "x" * 4001}),
        (PRIVATE, {"id": "1" * 4001, "to": "ada", "text": "hush"}),
        (PRIVATE, {"id": 1, "to": "ada", "text": "hush"}),
    ],
)
def test_nonsense_is_refused(channel: str, data: object) -> None:
    room = Room()
    ada = room.enter("ada")
    ada.hear()
    ada.publish(channel, data)
    assert [reply["successful"] for reply in ada.hear() if reply["channel"] == channel] == [False]


def test_who_may_not_have_a_name_cannot_get_what_is_for_its_bearer() -> None:
    class Own(SecurityPolicy):
        def can_claim(
            self, session: Session, subject: str, number: int, handshake: Json
        ) -> Denial | None:
            return Denial("not_yours") if subject == "bob" else None

    room = Room()
    room.house.bayeux.state.rights.policy = Own()
    ada, eve = room.enter("ada"), room.enter("eve")
    reply = eve.publish(HERE, {"name": "bob"}).reply
    assert reply["error"] == "403:not_yours:session_name_denied"
    ada.publish(PRIVATE, {"id": "1", "to": "bob", "text": "hush"})
    room.house.turn()
    assert [words["error"] for words in told(ada, PRIVATE)] == [UNKNOWN]
    assert told(eve, PRIVATE) == []


def test_who_is_not_in_the_chat_cannot_whisper() -> None:
    room = Room()
    stranger = room.house.connected()
    reply = stranger.publish(PRIVATE, {"id": "1", "to": "ada", "text": "hush"}).reply
    assert reply["error"] == "403:private:publish_denied"


def test_who_comes_back_from_the_store_is_away_until_it_connects() -> None:
    room = Room()
    bob = room.enter_as_named("bob")
    ada = room.enter("ada")
    assert bob.socket is not None
    room.house.close(bob.socket)
    room.house.bayeux.state.installed.all[-1].resume(bob.session, room.house.now)
    room.look()
    assert members(ada) == [("ada", "here"), ("bob", "away")]


@pytest.mark.parametrize("name", ["constructor", "toString", "__proto__", "__class__", "None"])
def test_people_and_rooms_may_have_any_name(name: str) -> None:
    room = Room()
    ada = room.enter("ada")
    ada.subscribe(ROOMS + name, MEMBERS + name)
    ada.publish(HERE, {"name": "ada"})
    room.look()
    (news,) = told(ada, MEMBERS + name)
    assert [member["name"] for member in news["members"]] == ["ada"]
    if not name.startswith("_"):
        room.enter(name)
        assert (name, "here") in members(ada)
        ada.publish(PRIVATE, {"id": "1", "to": name, "text": "hello"})
        room.house.turn()
        assert told(ada, PRIVATE)[-1]["receivers"] == 1
