"""Which session names a handshake may claim, and which sessions end once it is accepted."""

from collections.abc import Awaitable

import pytest

from holdfast.bayeux.extending.base import ServerExtension, SessionExtension
from holdfast.bayeux.rights import Denial, SecurityPolicy
from holdfast.bayeux.session import Session
from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from tests.unit.bayeux.harness import Asked, Client
from tests.unit.bayeux.second_lives import RestartableServer, connect, named, publish

DENIED = "403:user.security.authorization.notAuthorized:session_name_denied"


class LateDecision(ServerExtension):
    """Decides on each handshake later, when the test resolves it."""

    async def _look_up(self) -> None:
        """What the test resolves."""

    def negotiate(
        self, session: Session, handshake: Json, reply: Json, now: float
    ) -> Awaitable[SessionExtension | None]:
        return self._look_up()


class Badge(ServerExtension):
    """Gives a session the role that its handshake names."""

    def negotiate(self, session: Session, handshake: Json, reply: Json, now: float) -> None:
        session.identity.role = handshake.get("ext", {}).get("badge", "")


def clear_others(server: RestartableServer, name: str = "joe/2", **ext: object) -> Asked:
    """A handshake that asks to end all other sessions of its subject."""
    wanted = {"name": name, "clearSessions": True}
    asked = server.guest().handshake(ext={"ack": True, "delivery": {"session": wanted}, **ext})
    server.turn()
    return asked


def keys(server: RestartableServer) -> list[str]:
    return sorted(session.key for session in server.bayeux.state.sessions)


def letters(server: RestartableServer) -> list[tuple[str, object]]:
    return [(letter.key, letter.code) for letter in server.store.letters]


# Ending the other sessions of a subject


def test_clear_sessions_ends_the_subjects_other_sessions_and_dead_letters_their_messages() -> None:
    server = RestartableServer()
    first = named(server)
    named(server, name="ann/1")
    publish(server, 1)
    connect(first, 1)
    publish(server, 2)
    assert clear_others(server).reply["successful"]
    assert keys(server) == ["ann/1", "joe/2"]
    assert letters(server) == [("joe/1", "communication.noConnection.dead")] * 2
    assert all("ended by client/joe/2" in letter.reason for letter in server.store.letters)
    assert sorted(server.store.sessions) == ["ann/1", "joe/2"]
    assert server.balances()


def test_the_client_of_a_session_ended_by_clear_sessions_is_advised_not_to_reconnect() -> None:
    server = RestartableServer()
    waiting = named(server).connect(ext={"ack": 0})
    assert clear_others(server).reply["successful"]
    goodbye, reply = waiting.elements
    assert goodbye["channel"] == "/meta/disconnect"
    assert reply["advice"]["reconnect"] == "none"


def test_a_refused_handshake_ends_no_other_session() -> None:
    server = RestartableServer()
    client = named(server)
    publish(server, 1)
    server.bayeux.state.installed.extend(LateDecision())
    asked = clear_others(server)
    assert asked.is_held
    assert keys(server) == ["joe/1"], "nothing ends before the handshake is accepted"
    server.resolve(Refused(ErrorReply.HANDSHAKE_DENIED))
    assert asked.reply["error"] == "403::handshake_denied"
    assert connect(client, 0).data == [1]
    assert letters(server) == []


def test_a_pending_handshake_ends_other_sessions_only_when_it_is_accepted() -> None:
    server = RestartableServer()
    named(server)
    server.bayeux.state.installed.extend(LateDecision())
    clear_others(server)
    late = server.guest()
    late.handshake(ext={"delivery": {"session": "joe/3"}})
    assert keys(server) == ["joe/1"]
    server.resolve(None)
    server.turn()
    assert keys(server) == ["joe/2"]
    server.resolve(None)
    server.turn()
    assert keys(server) == ["joe/2", "joe/3"]


@pytest.mark.parametrize("role", ["operator", "reader"])
def test_clear_sessions_without_a_role_is_refused_if_it_would_end_a_session_with_one(
    role: str,
) -> None:
    server = RestartableServer()
    server.bayeux.state.installed.extend(Badge())
    named(server)
    operator = server.guest()
    operator.handshake(ext={"delivery": {"session": "joe/7"}, "badge": role})
    server.turn()
    assert clear_others(server).reply["error"] == DENIED
    assert keys(server) == ["joe/1", "joe/7"]
    assert clear_others(server, badge="operator").reply["successful"]
    assert keys(server) == ["joe/2"]


def test_clear_sessions_is_refused_if_the_policy_denies_a_claim_of_another_session() -> None:
    class Own(SecurityPolicy):
        def can_claim(
            self, session: Session, subject: str, number: int, handshake: Json
        ) -> Denial | None:
            mine = handshake.get("ext", {}).get("mine", [number])
            return None if number in mine else Denial("not_yours")

    server = RestartableServer()
    server.bayeux.state.rights.policy = Own()
    named(server)
    assert clear_others(server, mine=[2]).reply["error"] == "403:not_yours:session_name_denied"
    assert keys(server) == ["joe/1"]
    assert clear_others(server, mine=[1, 2]).reply["successful"]
    assert keys(server) == ["joe/2"]


def test_clear_sessions_is_refused_while_no_dead_letters_can_be_written() -> None:
    server = RestartableServer()
    client = named(server)
    publish(server, 1)
    server.store.is_full = True
    assert clear_others(server).reply["error"] == "503::server_busy"
    server.store.is_full = False
    assert connect(client, 0).data == [1]
    assert clear_others(server).reply["successful"]
    assert len(letters(server)) == 1


# How many sessions a subject has


def test_the_last_session_of_a_subject_goes_to_the_handshake_that_is_accepted_first() -> None:
    server = RestartableServer()
    server.bayeux.state.installed.extend(LateDecision())
    asked = [
        server.guest().handshake(ext={"delivery": {"session": {"name": name, "maxSessions": 1}}})
        for name in ("joe/1", "joe/2")
    ]
    for _ in asked:
        server.resolve(None)
    server.turn()
    assert asked[0].reply["successful"]
    assert asked[1].reply["error"] == "403:user.configuration.maxSession:sessions_exceeded"


def test_a_session_can_be_resumed_although_its_subject_has_too_many() -> None:
    server = RestartableServer()
    named(server)
    named(server, name="joe/2")
    wanted = {"name": "joe/1", "maxSessions": 1}
    asked = server.guest().handshake(ext={"delivery": {"session": wanted}})
    server.turn()
    assert asked.reply["ext"]["delivery"]["resumed"] is True


@pytest.mark.parametrize(
    ("asked", "agreed"), [({}, 2), ({"maxSessions": 100_000}, 2), ({"maxSessions": 1}, 1)]
)
def test_a_handshake_can_lower_the_limit_of_sessions_per_subject_but_not_raise_it(
    asked: Json, agreed: int
) -> None:
    server = RestartableServer(max_sessions_per_subject=2)
    replies = []
    for number in (1, 2, 3):
        named_so = {"name": f"joe/{number}", **asked}
        replies.append(server.guest().handshake(ext={"delivery": {"session": named_so}}))
        server.turn()
    assert [each.reply["successful"] for each in replies].count(True) == agreed
    told = replies[0].reply["ext"]["delivery"]["session"]
    assert told["maxSessions"] == agreed


# Ended by the server


def test_the_messages_of_a_named_session_become_dead_letters_when_the_server_ends_it() -> None:
    server = RestartableServer()
    client = named(server)
    publish(server, 1)
    connect(client, 1)
    publish(server, 2)
    server.for_extensions.end_by_server(client.session)
    server.turn()
    assert letters(server) == [("joe/1", "communication.noConnection.dead")] * 2
    assert server.store.sessions == {}
    assert server.balances()


def test_a_pending_publish_becomes_a_dead_letter_when_the_server_ends_its_named_receiver() -> None:
    server = RestartableServer()
    client: Client = named(server)
    asked = server.connected().publish("/a", 1)
    server.for_extensions.end_by_server(client.session)
    server.turn()
    assert asked.reply["successful"]
    assert letters(server) == [("joe/1", "communication.noConnection.dead")]
    assert server.balances()
