"""Whose names may be used, and which sessions end for a new client: once it is let in."""

from collections.abc import Awaitable

import pytest

from holdfast.bayeux.codec import Json
from holdfast.bayeux.errors import ErrorReply, Refused
from holdfast.bayeux.extension import ServerExtension, SessionExtension
from holdfast.bayeux.rights import Denial, SecurityPolicy
from holdfast.bayeux.sessions import Session
from tests.unit.bayeux.harness import Asked, Client
from tests.unit.bayeux.second_lives import KeptHouse, connect, named, publish

DENIED = "403:user.security.authorization.notAuthorized:session_name_denied"


class Door(ServerExtension):
    """Asks for a ticket, and somebody else whether it is good."""

    async def _look_up(self) -> None:
        """What the test resolves."""

    def negotiate(
        self, session: Session, handshake: Json, reply: Json, now: float
    ) -> Awaitable[SessionExtension | None]:
        return self._look_up()


class Badge(ServerExtension):
    """Makes an operator of who says so."""

    def negotiate(self, session: Session, handshake: Json, reply: Json, now: float) -> None:
        session.identity.role = handshake.get("ext", {}).get("badge", "")


def alone(house: KeptHouse, name: str = "joe/2", **ext: object) -> Asked:
    """A client that wants to be its subject's only one."""
    wanted = {"name": name, "clearSessions": True}
    asked = house.guest().handshake(ext={"ack": True, "delivery": {"session": wanted}, **ext})
    house.turn()
    return asked


def keys(house: KeptHouse) -> list[str]:
    return sorted(session.key for session in house.bayeux.state.sessions)


def letters(house: KeptHouse) -> list[tuple[str, object]]:
    return [(letter.key, letter.code) for letter in house.store.letters]


# Wanting to be alone


def test_the_other_sessions_of_the_subject_end_and_what_they_had_becomes_dead_letters() -> None:
    house = KeptHouse()
    first = named(house)
    named(house, name="ann/1")
    publish(house, 1)
    connect(first, 1)
    publish(house, 2)
    assert alone(house).reply["successful"]
    assert keys(house) == ["ann/1", "joe/2"]
    assert letters(house) == [("joe/1", "communication.noConnection.dead")] * 2
    assert all("ended by client/joe/2" in letter.reason for letter in house.store.letters)
    assert sorted(house.store.sessions) == ["ann/1", "joe/2"]
    assert house.balances()


def test_whose_session_ends_is_told_and_does_not_come_back_by_itself() -> None:
    house = KeptHouse()
    waiting = named(house).connect(ext={"ack": 0})
    assert alone(house).reply["successful"]
    goodbye, reply = waiting.elements
    assert goodbye["channel"] == "/meta/disconnect"
    assert reply["advice"]["reconnect"] == "none"


def test_who_is_not_let_in_ends_nobody() -> None:
    house = KeptHouse()
    client = named(house)
    publish(house, 1)
    house.bayeux.state.installed.extend(Door())
    asked = alone(house)
    assert asked.is_held
    assert keys(house) == ["joe/1"], "nothing happens before it is known"
    house.resolve(Refused(ErrorReply.HANDSHAKE_DENIED))
    assert asked.reply["error"] == "403::handshake_denied"
    assert connect(client, 0).data == [1]
    assert letters(house) == []


def test_who_is_let_in_later_ends_others_then() -> None:
    house = KeptHouse()
    named(house)
    house.bayeux.state.installed.extend(Door())
    alone(house)
    late = house.guest()
    late.handshake(ext={"delivery": {"session": "joe/3"}})
    house.resolve(None)
    house.turn()
    assert keys(house) == ["joe/2"]
    house.resolve(None)
    house.turn()
    assert keys(house) == ["joe/2", "joe/3"]


@pytest.mark.parametrize("role", ["operator", "reader"])
def test_a_stranger_ends_no_operators_session_and_then_no_other_either(role: str) -> None:
    house = KeptHouse()
    house.bayeux.state.installed.extend(Badge())
    named(house)
    operator = house.guest()
    operator.handshake(ext={"delivery": {"session": "joe/7"}, "badge": role})
    house.turn()
    assert alone(house).reply["error"] == DENIED
    assert keys(house) == ["joe/1", "joe/7"]
    assert alone(house, badge="operator").reply["successful"]
    assert keys(house) == ["joe/2"]


def test_who_may_not_take_a_session_over_may_not_end_it_either() -> None:
    class Own(SecurityPolicy):
        def can_claim(
            self, session: Session, subject: str, number: int, handshake: Json
        ) -> Denial | None:
            mine = handshake.get("ext", {}).get("mine", [number])
            return None if number in mine else Denial("not_yours")

    house = KeptHouse()
    house.bayeux.state.rights.policy = Own()
    named(house)
    assert alone(house, mine=[2]).reply["error"] == "403:not_yours:session_name_denied"
    assert keys(house) == ["joe/1"]
    assert alone(house, mine=[1, 2]).reply["successful"]
    assert keys(house) == ["joe/2"]


def test_while_no_letter_can_be_written_nobody_ends() -> None:
    house = KeptHouse()
    client = named(house)
    publish(house, 1)
    house.store.is_full = True
    assert alone(house).reply["error"] == "503::server_busy"
    house.store.is_full = False
    assert connect(client, 0).data == [1]
    assert alone(house).reply["successful"]
    assert len(letters(house)) == 1


# How many sessions a subject has


def test_the_last_place_goes_to_who_is_let_in_first() -> None:
    house = KeptHouse()
    house.bayeux.state.installed.extend(Door())
    asked = [
        house.guest().handshake(ext={"delivery": {"session": {"name": name, "maxSessions": 1}}})
        for name in ("joe/1", "joe/2")
    ]
    for _ in asked:
        house.resolve(None)
    house.turn()
    assert asked[0].reply["successful"]
    assert asked[1].reply["error"] == "403:user.configuration.maxSession:sessions_exceeded"


def test_a_subject_with_too_many_sessions_may_still_come_back_to_each() -> None:
    house = KeptHouse()
    named(house)
    named(house, name="joe/2")
    wanted = {"name": "joe/1", "maxSessions": 1}
    asked = house.guest().handshake(ext={"delivery": {"session": wanted}})
    house.turn()
    assert asked.reply["ext"]["delivery"]["resumed"] is True


@pytest.mark.parametrize(
    ("asked", "agreed"), [({}, 2), ({"maxSessions": 100_000}, 2), ({"maxSessions": 1}, 1)]
)
def test_a_client_can_want_fewer_sessions_of_its_subject_than_it_may_have_not_more(
    asked: Json, agreed: int
) -> None:
    house = KeptHouse(max_sessions_per_subject=2)
    replies = []
    for number in (1, 2, 3):
        named_so = {"name": f"joe/{number}", **asked}
        replies.append(house.guest().handshake(ext={"delivery": {"session": named_so}}))
        house.turn()
    assert [each.reply["successful"] for each in replies].count(True) == agreed
    told = replies[0].reply["ext"]["delivery"]["session"]
    assert told["maxSessions"] == agreed


# Ended by the server


def test_what_was_kept_for_a_named_session_becomes_dead_letters_when_the_server_ends_it() -> None:
    house = KeptHouse()
    client = named(house)
    publish(house, 1)
    connect(client, 1)
    publish(house, 2)
    house.server.end_by_server(client.session)
    house.turn()
    assert letters(house) == [("joe/1", "communication.noConnection.dead")] * 2
    assert house.store.sessions == {}
    assert house.balances()


def test_what_the_store_answers_after_that_is_a_dead_letter_too() -> None:
    house = KeptHouse()
    client: Client = named(house)
    asked = house.connected().publish("/a", 1)
    house.server.end_by_server(client.session)
    house.turn()
    assert asked.reply["successful"]
    assert letters(house) == [("joe/1", "communication.noConnection.dead")]
    assert house.balances()
