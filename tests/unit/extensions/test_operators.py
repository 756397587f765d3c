"""Operators: what their tokens open, what the service does, what is written down of it."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest

from app.bayeux.commands import Command
from app.bayeux.extension_chain import ServerExtension
from app.bayeux.properties import QueueQuery
from app.bayeux.records import restore
from app.bayeux.registry import LiveRegistry, Process
from app.bayeux.rights import Denial, SecurityPolicy
from app.bayeux.sessions import Session
from app.delivery.counters import Reason
from extensions.ack import Ack
from extensions.delivery import Delivery
from extensions.operators import OPERATOR, READER, Operators
from tests.unit.bayeux.harness import Asked, Client, House, Json
from tests.unit.bayeux.second_lives import again

ROLES = {"open-sesame": OPERATOR, "let-me-see": READER}
MOST_GUESSES = 10


class Audit(list[tuple[str, str, str, str]]):
    """Who did what to whom, and what came of it."""

    def note(
        self,
        who: str,
        action: str,
        target: str,
        *,
        outcome: str = "ok",
        detail: Mapping[str, Any] | None = None,
    ) -> None:
        self.append((who, action, target, outcome))


class Waiting(list[tuple[Command, Callable[[float], None]]]):
    """Commands whose time is not over."""

    def wait(self, command: Command, done: Callable[[float], None]) -> None:
        self.append((command, done))

    def is_over(self, house: House) -> None:
        """All go on, in the order in which they came."""
        for _, done in self:
            done(house.now)
        self.clear()
        house.turn()


class Guesses(list[float]):
    """When wrong tokens came; only so many may come at one time."""

    def count_one(self, now: float) -> float:
        self.append(now)
        return 0.0 if len(self) <= MOST_GUESSES else 4.0


def house_of(
    audit: Audit | None = None,
    waiting: Waiting | None = None,
    *,
    before: House | None = None,
    seal: str = "",
) -> House:
    """A server; one that comes `before` another has left its store. Other tokens, another seal."""
    wait = (waiting if waiting is not None else Waiting()).wait
    note = (audit if audit is not None else Audit()).note

    def operators(bayeux: Any) -> Operators:
        return Operators(
            bayeux,
            role_of=ROLES.get,
            warrant_of=lambda role: f"{role}{seal}",
            guess=Guesses().count_one,
            registry=partial(LiveRegistry, bayeux, Process("1.2", 0)),
            note=note,
            wait=wait,
        )

    keeper = None if before is None else before.keeper
    house = House(
        operators, Delivery, partial(Ack, announces_batch=False), keeper=keeper, after=before
    )
    if before is not None:
        house.bayeux.now = house.now
        for record in list(house.keeper.sessions.values()):
            restore(house.bayeux, record, house.keeper.waiting(record.key))
    return house


def signed_in(house: House, token: str = "open-sesame", **ext: Any) -> Client:
    return house.connected(ext={"authentication": {"token": token}, **ext})


def command(client: Client, text: object, **fields: Any) -> Asked:
    return client.publish("/service/admin", {"cmd": text, **fields})


def answer_of(asked: Asked) -> tuple[bool, Json]:
    """Whether the call succeeded, and what it gave."""
    (answer,) = [element for element in asked.elements if "data" in element]
    return answer["successful"], answer["data"]


# The token


@pytest.mark.parametrize("token", ["open-sesam", "", "OPEN-SESAME", None, 5, ["open-sesame"], {}])
def test_a_wrong_token_is_refused(token: Any, caplog: pytest.LogCaptureFixture) -> None:
    house = house_of()
    reply = house.guest().handshake(ext={"authentication": {"token": token}}).reply
    assert reply["error"] == "403::handshake_denied"
    assert reply["advice"]["reconnect"] == "none"
    assert len(house.bayeux.sessions) == 0
    assert caplog.messages == ["a wrong operators' token was presented at a handshake"]


class Door(SecurityPolicy):
    """Has tokens of its own."""

    def can_handshake(self, session: Session, handshake: Json) -> Denial | None:
        return None if handshake["ext"]["authentication"]["token"] == "a ticket" else Denial()


class Names(SecurityPolicy):
    def can_claim(
        self, session: Session, subject: str, number: int, handshake: Json
    ) -> Denial | None:
        return None


class Rooms(SecurityPolicy):
    """Is about channels alone."""

    def can_create(self, session: Session, channel: str, message: Json) -> Denial | None:
        return None


class Cloakroom(ServerExtension):
    owns = frozenset({"authentication"})


@pytest.mark.parametrize("other", [Door, Names, Cloakroom])
def test_a_token_that_may_be_somebody_elses_gives_no_rights_and_is_refused_by_that_one_only(
    other: type[SecurityPolicy | ServerExtension], caplog: pytest.LogCaptureFixture
) -> None:
    house = house_of()
    if issubclass(other, ServerExtension):
        house.bayeux.extend(other())
    else:
        house.bayeux.rights.policy = other()
    clients = [signed_in(house, "a ticket") for _ in range(MOST_GUESSES + 1)]
    assert not any(client.session.is_operator for client in clients)
    assert clients[-1].subscribe("/sys/deadMessage").reply["error"].startswith("403")
    assert caplog.messages == []


def test_a_policy_about_channels_knows_no_tokens() -> None:
    house = house_of()
    house.bayeux.rights.policy = Rooms()
    guessed = house.guest().handshake(ext={"authentication": {"token": "a ticket"}})
    assert guessed.reply["error"] == "403::handshake_denied"


def test_whoever_goes_on_guessing_is_told_to_wait_and_keeps_no_right_token_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    house = house_of()
    replies = [
        house.guest().handshake(ext={"authentication": {"token": f"guess-{n}"}}).reply
        for n in range(30)
    ]
    errors = [reply["error"] for reply in replies]
    assert errors == ["403::handshake_denied"] * MOST_GUESSES + ["503::server_busy"] * 20
    advice = replies[-1]["advice"]
    assert (advice["reconnect"], advice["interval"]) == ("handshake", 4000)
    assert signed_in(house).session.role == OPERATOR
    assert len(caplog.messages) == MOST_GUESSES
    assert "guess-" not in caplog.text


@pytest.mark.parametrize("ext", [None, {}, {"authentication": None}, {"authentication": "basic"}])
def test_without_a_token_a_client_is_nobody_special(ext: Any) -> None:
    client = house_of().connected(ext=ext)
    assert not client.session.is_operator
    assert client.subscribe("/sys/deadMessage").reply["error"].startswith("403")
    asked = command(client, "?uptime")
    assert asked.reply["error"] == "403:denied_by_security_policy:publish_denied"


def test_credentials_of_another_kind_are_left_to_whoever_knows_them() -> None:
    ext = {"authentication": {"user": "joe", "password": "secret"}}
    assert not house_of().connected(ext=ext).session.is_operator


@pytest.mark.parametrize("token", ROLES)
def test_a_token_opens_what_the_system_tells(token: str) -> None:
    client = signed_in(house_of(), token)
    assert client.subscribe("/sys/deadMessage").reply["successful"]
    assert not client.publish("/sys/deadMessage", {}).reply["successful"]


def test_nobody_else_sees_a_token() -> None:
    house = house_of()
    curious = house.connected()
    curious.subscribe("/a")
    sender = signed_in(house)
    sender.publish("/a", 1, ext={"authentication": {"token": "open-sesame"}})
    assert curious.connect().events == [{"channel": "/a", "data": 1}]


# After a restart


def watching(house: House) -> Client:
    """An operator whose session is kept, and two things that the system has told since."""
    client = house.guest()
    ext = {"ack": True, "delivery": {"session": "ops/1"}}
    client.handshake(ext={"authentication": {"token": "open-sesame"}, **ext})
    house.turn()
    client.connect(advice={"timeout": 0}, ext={"ack": 0})
    client.subscribe("/sys/alert", "/a")
    house.turn()
    tell(house, 1)
    house.turn()
    client.connect(advice={"timeout": 0}, ext={"ack": 1})
    house.turn()
    tell(house, 2)
    return client


def tell(house: House, number: int) -> None:
    house.bayeux.ownership.alert("/a", f"trouble {number}")
    house.bayeux.publish("/a", number)
    house.turn()


def heard(client: Client) -> list[str]:
    asked = client.connect(advice={"timeout": 0}, ext={"ack": 0})
    client.house.turn()
    return [event["channel"] for event in asked.events]


def test_an_operator_stays_one_after_a_restart_while_the_token_is_the_same() -> None:
    before = house_of()
    client = watching(before)
    house = house_of(before=before)
    client = again(client, house)
    tell(house, 3)
    assert sorted(heard(client)) == ["/a"] * 3 + ["/sys/alert"] * 3
    assert command(client, "?nodeId").reply["successful"]
    house = house_of(before=house)
    assert again(client, house).session.role == OPERATOR


def test_who_had_a_token_that_is_no_more_is_nobody_special_after_a_restart() -> None:
    before = house_of()
    client = watching(before)
    house = house_of(before=before, seal="new")
    client = again(client, house)
    assert client.session.role == ""
    assert client.session.subscriptions == {"/a"}
    tell(house, 3)
    assert heard(client) == ["/a"] * 3, "what it was not told before it is not told any more"
    assert client.subscribe("/sys/alert").reply["error"].startswith("403")
    assert command(client, "?nodeId").reply["error"].startswith("403")
    assert house.bayeux.hub.counters.discarded == {Reason.NOT_ALLOWED: 2}
    assert len(house.keeper.queues["ops/1"]) == 3
    assert house.balances()


def test_what_a_session_lost_with_its_token_does_not_come_back_with_its_next_client() -> None:
    before = house_of()
    watching(before)
    house = house_of(before=before, seal="new")
    stranger = house.guest()
    asked = stranger.handshake(ext={"ack": True, "delivery": {"session": "ops/1"}})
    house.turn()
    stranger.learn(asked)
    assert heard(stranger) == ["/a"] * 2
    house = house_of(before=house)
    assert again(stranger, house).session.role == ""


def test_where_there_are_no_operators_nobody_is_one() -> None:
    before = house_of()
    watching(before)
    house = House(Delivery, keeper=before.keeper, after=before)
    house.bayeux.now = house.now
    (record,) = house.keeper.sessions.values()
    session = restore(house.bayeux, record, house.keeper.waiting(record.key))
    assert session.role == ""


# The service


def test_an_operator_is_answered() -> None:
    client = signed_in(house_of())
    asked = client.send({"channel": "/service/admin", "data": {"cmd": "?nodeId"}, "id": "77"})
    assert answer_of(asked) == (True, {"command": "/node/test/?nodeId", "value": "test"})
    assert {element["id"] for element in asked.elements} == {"77"}


def test_a_value_may_stand_in_the_command_or_beside_it() -> None:
    house = house_of()
    client, other = signed_in(house), house.connected()
    name = other.session.name
    succeeded, data = answer_of(command(client, f"{name}/?dispatcherActive", value="false"))
    assert succeeded
    assert (data["state"], data["value"]) == ("OK", "false")
    assert data["info"] == f"/node/test/{name}/?dispatcherActive=false"
    assert answer_of(command(client, f"{name}/?dispatcherActive"))[1]["value"] == "false"
    assert answer_of(command(client, f"set {name}/?dispatcherActive=true"))[1]["value"] == "true"


def test_entries_of_a_queue_come_as_events() -> None:
    house = house_of()
    client, other = signed_in(house), house.connected()
    other.subscribe("/a")
    house.bayeux.publish("/a", {"n": 1})
    asked = command(client, f"{other.session.name}/?peekCallbackMessages=3")
    assert answer_of(asked)[1]["entries"] == [{"channel": "/a", "data": {"n": 1}}]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (None, "user.illegalArgument"),
        ("?uptime", "user.illegalArgument"),
        ({}, "user.illegalArgument"),
        ({"cmd": 5}, "user.illegalArgument"),
        ({"cmd": "uptime"}, "user.illegalArgument"),
        ({"cmd": "?nodeId", "value": 5}, "user.illegalArgument"),
        ({"cmd": "?nodeId", "value": "x" * 5000}, "user.illegalArgument"),
        ({"cmd": "set ?nodeId=x"}, "user.admin.invalid"),
        ({"cmd": "client/joe/1/?uptime"}, "user.illegalArgument"),
        ({"cmd": "topic/a/?uptime"}, "internal.notImplemented"),
    ],
)
def test_a_command_that_makes_no_sense_is_refused_with_a_code(data: Any, code: str) -> None:
    asked = signed_in(house_of()).publish("/service/admin", data)
    succeeded, told = answer_of(asked)
    assert (succeeded, told["code"]) == (False, code)
    assert told["message"]


def test_a_reader_looks_and_changes_nothing() -> None:
    audit = Audit()
    house = house_of(audit)
    client, other = signed_in(house, "let-me-see"), house.connected()
    assert answer_of(command(client, f"{other.session.name}/?killSession")) == (
        False,
        {
            "code": "user.security.authorization.notAuthorized",
            "message": "the operator's token is needed",
        },
    )
    assert not other.session.is_gone
    assert answer_of(command(client, f"{other.session.name}/?id"))[0]
    (entry,) = audit
    assert entry[0] == f"reader {client.session.name}"
    assert entry[3] == "user.security.authorization.notAuthorized"


def test_what_changes_something_is_written_down_whatever_came_of_it() -> None:
    audit = Audit()
    house = house_of(audit)
    client, other = signed_in(house), house.connected()
    name = other.session.name
    command(client, f"{name}/?uptime")
    command(client, f"{name}/?killSession")
    command(client, f"{name}/?killSession")
    who = f"operator {client.session.name}"
    assert audit == [
        (who, "command", f"/node/test/{name}/?killSession", "ok"),
        (who, "command", f"/node/test/{name}/?killSession", "user.illegalArgument"),
    ]


def test_a_command_may_wait_for_what_comes() -> None:
    waiting, audit = Waiting(), Audit()
    house = house_of(audit, waiting)
    client, other = signed_in(house), house.connected()
    other.subscribe("/a")
    query = "?cbQueueEntries=maxEntries=2&consumable=true&waitingDelay=200"
    asked = command(client, f"{other.session.name}/{query}")
    assert asked.reply["successful"]
    assert len(asked.elements) == 1
    ((meant, _),) = waiting
    assert meant.argument == QueueQuery(2, consumable=True, waiting_delay_ms=200)
    house.bayeux.publish("/a", 1)
    assert audit == []
    waiting.is_over(house)
    succeeded, told = answer_of(client.connect())
    assert succeeded
    assert told["entries"] == [{"channel": "/a", "data": 1}]
    assert len(audit) == 1
    assert other.session.queue.count == 0


def test_a_reader_does_not_wait_to_hear_that_it_may_not() -> None:
    waiting = Waiting()
    house = house_of(waiting=waiting)
    client, other = signed_in(house, "let-me-see"), house.connected()
    query = f"{other.session.name}/?cbQueueEntries=waitingDelay=-1"
    assert not answer_of(command(client, f"{query}&consumable=true"))[0]
    assert len(command(client, query).elements) == len(waiting) == 1


def test_nothing_is_taken_out_of_a_queue_for_somebody_who_left() -> None:
    waiting = Waiting()
    house = house_of(waiting=waiting)
    client, other = signed_in(house), house.connected()
    other.subscribe("/a")
    query = "?cbQueueEntries=maxEntries=2&consumable=true&waitingDelay=200"
    command(client, f"{other.session.name}/{query}")
    house.bayeux.publish("/a", 1)
    client.disconnect()
    waiting.is_over(house)
    assert other.session.queue.count == 1


def test_not_everybody_may_wait_at_one_time() -> None:
    waiting = Waiting()
    house = house_of(waiting=waiting)
    client, other = signed_in(house), house.connected()
    query = f"{other.session.name}/?cbQueueEntries=waitingDelay=-1"
    for _ in range(100):
        assert len(command(client, query).elements) == 1
    assert answer_of(command(client, query))[1]["code"] == "resource.exhaust"
    waiting.is_over(house)
    command(client, query)
    assert len(waiting) == 1


def test_an_operator_can_end_its_own_session() -> None:
    house = house_of()
    client = signed_in(house)
    command(client, f"{client.session.name}/?killSession")
    assert len(house.bayeux.sessions) == 0
    assert client.connect().reply["error"].startswith("402")


def test_whoever_takes_over_an_operators_session_needs_a_token_too() -> None:
    house = house_of()
    named = {"session": "joe/1"}
    signed_in(house, delivery=named)
    reply = house.guest().handshake(ext={"delivery": named}).reply
    assert reply["error"].startswith("403:user.security.authorization.notAuthorized")
