"""Clients see who is on a channel, as far as their rights allow it."""

from typing import Any

import pytest

from holdfast.bayeux.rights import Denial, SecurityPolicy, Vote
from holdfast.bayeux.session import Session
from holdfast.bayeux.wire.login import Login, LoginMethod
from holdfast.bayeux.wire.operation import Operation
from holdfast.delivery.basics.channels import PRESENCE
from holdfast.delivery.queues.queue import CallbackQueue
from holdfast.settings import ChannelSettings
from tests.unit.bayeux.harness import Client, Json, Server, server_of
from tests.unit.bayeux.publish.test_point_to_point import leave, named
from tests.unit.bayeux.second_lives import RestartableServer, again, drain
from tests.unit.bayeux.second_lives import named as kept
from tests.unit.extensions.delivering import HOLDBACK, connect, no, publish

RULES = {"/room/**": ChannelSettings(presence=True)}
SERVICE = "/service/presence"
ROOM = "/room/a"
EVENTS = "/sys/presence/room/a"


def server(**options: Any) -> Server:
    return server_of(channels=RULES, **options)


def ask(client: Client, data: Any) -> Any:
    """What the service answers."""
    asked = client.send({"channel": SERVICE, "data": data})
    client.server.turn()
    answers = [each for each in asked.elements if "data" in each]
    if not answers:
        return asked.reply.get("error")
    (answer,) = answers
    assert answer["successful"] is ("code" not in answer["data"])
    return answer["data"]


def on(server: Server, *channels: str) -> Client:
    """A client with subscriptions to these channels."""
    client = server.client()
    client.subscribe(*channels)
    return client


def watcher(server: Server, *channels: str) -> Client:
    """A client that is told of joins and leaves."""
    client = on(server, *(channels or (EVENTS,)))
    client.connect()
    server.turn()
    return client


def heard(client: Client) -> list[Json]:
    client.server.turn()
    events = client.connect(advice={"timeout": 0}).events
    assert all(event["channel"] == PRESENCE + event["data"]["channel"][1:] for event in events)
    return [event["data"] for event in events]


def sessions(members: list[Json]) -> list[str]:
    return [each["session"] for each in members]


def test_the_service_lists_members_with_the_times_of_their_joins() -> None:
    here = server()
    now_ms = here.bayeux.state.node.now_ms()
    joe = named(here, "joe/1")
    joe.subscribe(ROOM)
    here.advance(5.0)
    guest = on(here, ROOM)
    answer = ask(here.client(), {"channel": ROOM})
    first, second = answer.pop("members")
    assert answer == {"channel": ROOM, "count": 2, "next": None}
    assert first.pop("since") == pytest.approx(now_ms, abs=100)
    assert first == {"subject": "joe", "session": "client/joe/1", "state": "here"}
    assert second["subject"] == "anonymous"
    assert second["session"] == guest.session.name
    assert second["since"] == pytest.approx(now_ms + 5000, abs=100)


def test_the_service_answers_a_limit_of_zero_with_the_count_alone() -> None:
    here = server()
    on(here, ROOM)
    assert ask(here.client(), {"channel": ROOM, "limit": 0}) == {"channel": ROOM, "count": 1}


def test_a_subscriber_of_a_pattern_is_not_a_member_of_its_channels() -> None:
    here = server()
    watching = watcher(here)
    on(here, "/room/*")
    on(here, "/room/**")
    on(here, "/**")
    assert ask(here.client(), {"channel": ROOM})["count"] == 0
    assert heard(watching) == []


def test_members_are_listed_page_by_page_though_some_leave_meanwhile() -> None:
    here = server()
    members = [on(here, ROOM) for _ in range(5)]
    names = [each.session.name for each in members]
    client = here.client()
    page = ask(client, {"channel": ROOM, "limit": 2})
    assert sessions(page["members"]) == names[:2]
    members[1].disconnect()
    page = ask(client, {"channel": ROOM, "limit": 2, "after": page["next"]})
    assert sessions(page["members"]) == names[2:4]
    page = ask(client, {"channel": ROOM, "limit": 2, "after": page["next"]})
    assert sessions(page["members"]) == names[4:]
    assert page["next"] is None


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "channel must be a single channel"),
        ({}, "channel must be a single channel"),
        ({"channel": 1}, "channel must be a single channel"),
        ({"channel": "/room/*"}, "channel must be a single channel"),
        ({"channel": "/meta/connect"}, "channel must be a single channel"),
        ({"channel": "/plain"}, "/plain has no presence"),
        ({"channel": "/sys/login"}, "/sys/login has no presence"),
        ({"channel": ROOM, "names": True}, "data has only channel, limit and after"),
        ({"channel": ROOM, "limit": -1}, "limit must be a number from 0 to 1000"),
        ({"channel": ROOM, "limit": 1001}, "limit must be a number from 0 to 1000"),
        ({"channel": ROOM, "after": 1}, "after must be the `next`"),
        ({"channel": ROOM, "after": "-1"}, "after must be the `next`"),
        ({"channel": ROOM, "after": "\u0664"}, "after must be the `next`"),
        ({"channel": ROOM, "after": "9" * 5000}, "after must be the `next`"),
    ],
    ids=lambda given: repr(given)[:40],
)
def test_an_invalid_call_of_the_service_is_answered_with_the_reason(
    data: Any, message: str
) -> None:
    answer = ask(server().client(), data)
    assert answer["code"] == "user.illegalArgument"
    assert message in answer["message"]


def test_a_watcher_is_told_once_of_each_join_and_leave() -> None:
    here = server()
    watching = watcher(here)
    joe = named(here, "joe/1")
    joe.subscribe(ROOM)
    joe.subscribe(ROOM)
    (event,) = heard(watching)
    (member,) = event["joined"]
    assert event == {"channel": ROOM, "count": 1, "joined": [member], "left": [], "changed": []}
    assert member["session"] == "client/joe/1"
    joe.unsubscribe(ROOM)
    (event,) = heard(watching)
    assert event["joined"] == []
    assert event["left"] == [{"subject": "joe", "session": "client/joe/1"}]
    assert event["count"] == 0


def test_the_end_of_a_session_is_a_leave_from_each_of_its_channels() -> None:
    here = server()
    watching = watcher(here, "/sys/presence/room/*")
    gone, ended = on(here, ROOM), named(here, "joe/1")
    ended.subscribe(ROOM, "/room/b", "/elsewhere")
    name = gone.session.name
    heard(watching)
    gone.disconnect()
    leave(ended)
    left: dict[str, list[str]] = {}
    for event in heard(watching):
        left.setdefault(event["channel"], []).extend(sessions(event["left"]))
    assert left == {ROOM: [name, "client/joe/1"], "/room/b": ["client/joe/1"]}
    assert ask(watching, {"channel": "/room/b", "limit": 0})["count"] == 0


def test_the_expiry_of_a_session_is_a_leave() -> None:
    here = server()
    watching = watcher(here)
    lost = on(here, ROOM)
    name = lost.session.name
    assert [sessions(event["joined"]) for event in heard(watching)] == [[name]]
    left: list[dict[str, object]] = []
    while not left:
        here.advance(5.0)
        left = [each for event in heard(watching) for each in event["left"]]
    assert sessions(left) == [name]


def states(events: list[Json]) -> list[tuple[str, str]]:
    """The member states in events that tell nothing else."""
    assert not any(event["joined"] or event["left"] for event in events)
    return [(each["session"], each["state"]) for event in events for each in event["changed"]]


def test_a_member_whose_client_disconnects_and_returns_is_absent_but_does_not_leave() -> None:
    here = server()
    joe = named(here, "joe/1")
    joe.subscribe(ROOM)
    watching = watcher(here)
    before = ask(watching, {"channel": ROOM})
    joe.disconnect()
    assert states(heard(watching)) == [("client/joe/1", "absent")]
    assert ask(watching, {"channel": ROOM})["members"][0]["state"] == "absent"
    connect(named(here, "joe/1"))
    assert states(heard(watching))[-1] == ("client/joe/1", "here")
    assert ask(watching, {"channel": ROOM}) == before


def test_a_member_whose_client_is_silent_for_too_long_is_absent_until_it_connects() -> None:
    here = server()
    joe = named(here, "joe/1")
    joe.subscribe(ROOM)
    watching = watcher(here)
    told: list[tuple[str, str]] = []
    while not told:
        here.advance(5.0)
        told = states(heard(watching))
    assert set(told) == {("client/joe/1", "absent")}
    connect(joe)
    assert states(heard(watching)) == [("client/joe/1", "here")]
    connect(joe)
    assert heard(watching) == []


def test_a_member_is_here_again_once_the_store_confirms_its_new_client() -> None:
    here = server()
    joe = named(here, "joe/1")
    joe.subscribe(ROOM)
    watching = watcher(here)
    joe.disconnect()
    heard(watching)
    again = here.guest()
    again.handshake(ext={"delivery": {"session": "joe/1"}})
    # The turn ends before the store has confirmed who the client is.
    here.flush()
    assert states(heard(watching))[-1:] == [("client/joe/1", "here")]


def test_watchers_are_told_of_members_that_are_held_back_and_resumed() -> None:
    here = server()
    joe = named(here, "joe/1")
    joe.subscribe(ROOM)
    watching = watcher(here)
    here.bayeux.life.hold_back(joe.session, "a break", who="operator", now=here.now)
    assert states(heard(watching)) == [("client/joe/1", "held")]
    assert ask(watching, {"channel": ROOM})["members"][0]["state"] == "held"
    here.bayeux.life.resume(joe.session, here.now)
    assert states(heard(watching)) == [("client/joe/1", "here")]


def test_a_member_whose_new_client_holds_its_queue_back_is_held() -> None:
    here = server()
    joe = named(here, "joe/1")
    joe.subscribe(ROOM)
    watching = watcher(here)
    connect(named(here, "joe/1", dispatcherActive=False))
    assert states(heard(watching))[-1] == ("client/joe/1", "held")


def test_a_member_that_refuses_a_message_with_a_holdback_is_held() -> None:
    here = server()
    joe = named(here, "joe/1")
    joe.subscribe(ROOM)
    watching = watcher(here)
    publish(here, 1, channel=ROOM)
    here.turn()
    (event,) = connect(joe).events
    connect(joe, no(event, HOLDBACK))
    assert states(heard(watching)) == [("client/joe/1", "held")]


def test_a_join_and_a_change_of_state_in_one_turn_are_told_as_a_join() -> None:
    here = server()
    watching = watcher(here)
    joe = named(here, "joe/1")
    joe.subscribe(ROOM)
    here.bayeux.life.hold_back(joe.session, "a break", who="operator", now=here.now)
    (event,) = heard(watching)
    assert [each["state"] for each in event["joined"]] == ["held"]
    assert event["changed"] == []


def test_an_event_expires_for_watchers_that_do_not_fetch_it() -> None:
    here = server()
    ann = named(here, "ann/1")
    ann.subscribe(EVENTS)
    on(here, ROOM).disconnect()
    here.turn()
    assert ann.session.queue.count == 1
    here.advance(61.0)
    assert ann.session.queue.count == 0


def test_an_extension_can_offer_presence_on_channels_whose_rule_does_not() -> None:
    here = server_of(channels={"/room/**": ChannelSettings()})
    here.for_extensions.offer_presence("/room/*")
    on(here, ROOM, "/room/a/b")
    assert ask(here.client(), {"channel": ROOM})["count"] == 1
    answer = ask(here.client(), {"channel": "/room/a/b"})
    assert answer["message"] == "/room/a/b has no presence"


def test_all_joins_and_leaves_of_a_turn_are_told_in_one_event() -> None:
    here = server()
    watching = watcher(here)
    clients = [on(here, ROOM) for _ in range(3)]
    names = [each.session.name for each in clients]
    clients[0].unsubscribe(ROOM)
    (event,) = heard(watching)
    assert sessions(event["joined"]) == names[1:]
    assert sessions(event["left"]) == names[:1]
    assert event["count"] == 2


@pytest.mark.slow
def test_ten_thousand_leaves_in_a_turn_are_told_in_events_of_a_hundred_each() -> None:
    here = server()
    state = here.bayeux.state
    queue = CallbackQueue(state.queue_limits, state.counters)
    members = [state.sessions.draft(queue) for _ in range(10_000)]
    presence = state.presence
    for each in members:
        presence.join(ROOM, each)
    watching = watcher(here)
    other = watcher(here, "/sys/presence/room/b")
    answer = ask(watching, {"channel": ROOM, "limit": 1000})
    assert answer["count"] == 10_000
    assert len(answer["members"]) == 1000
    for each in members:
        presence.leave(ROOM, each)
    presence.join("/room/b", members[0])
    assert [sessions(event["joined"]) for event in heard(other)] == [[members[0].name]]
    events = heard(watching)
    assert {len(event["left"]) for event in events} == {100}
    assert [name for event in events for name in sessions(event["left"])] == [
        each.name for each in members
    ]


def test_a_join_without_watchers_causes_no_work_in_later_turns() -> None:
    here = server()
    on(here, ROOM)
    assert not here.bayeux.state.backlog


def test_a_channel_without_the_setting_has_no_presence() -> None:
    here = server_of()
    on(here, ROOM)
    answer = ask(here.client(), {"channel": ROOM})
    assert answer["message"] == "/room/a has no presence"
    assert here.bayeux.state.presence.count(ROOM) == 0


def test_joins_on_a_channel_with_a_very_long_name_are_counted_but_not_told() -> None:
    here = server()
    watching = watcher(here, "/sys/presence/**")
    longest = "/room/" + "a" * (1024 - len("/room/"))
    on(here, longest)
    assert ask(watching, {"channel": longest, "limit": 0})["count"] == 1
    assert heard(watching) == []


def test_a_client_may_not_publish_joins_and_leaves() -> None:
    here = server()
    refused = here.client().publish(EVENTS, {"joined": []}).reply
    assert refused["error"].startswith("403:")


class Granted:
    """What a login may do: these operations on channels below /room."""

    def __init__(self, *operations: Operation) -> None:
        self.operations = operations

    def allows(self, operation: Operation, channel: str) -> bool:
        is_service = channel == SERVICE and operation in (Operation.PUBLISH, Operation.CREATE)
        return is_service or (channel.startswith("/room/") and operation in self.operations)


def user(here: Server, *operations: Operation) -> Client:
    here.bayeux.state.rights.are_open = False
    client = here.client()
    client.session.identity.login = Login("ann", LoginMethod.PASSWORD)
    client.session.identity.grants = Granted(*operations)
    return client


DENIED = "403:denied_by_rights:presence_denied"


@pytest.mark.parametrize("channel", [ROOM, "/room/none", "/plain"])
def test_a_right_to_subscribe_does_not_include_asking_for_members(channel: str) -> None:
    here = server()
    on(here, ROOM)
    reader = user(here, Operation.SUBSCRIBE)
    assert ask(reader, {"channel": channel}) == DENIED
    assert ask(reader, {"channel": channel, "limit": 0}) == DENIED


@pytest.mark.parametrize("channel", [EVENTS, "/sys/presence/room/*", "/sys/presence/**"])
def test_a_client_without_the_presence_right_is_told_of_no_joins(channel: str) -> None:
    here = server()
    reader = user(here, Operation.SUBSCRIBE, Operation.CREATE)
    assert reader.subscribe(channel).reply["error"] == DENIED
    on(here, ROOM)
    assert reader.connect(advice={"timeout": 0}).events == []


def test_a_presence_right_covers_only_its_own_channels() -> None:
    here = server()
    reader = user(here, Operation.PRESENCE)
    on(here, ROOM)
    assert ask(reader, {"channel": ROOM})["count"] == 1
    assert reader.subscribe("/sys/presence/room/*").reply["successful"]
    assert reader.subscribe("/sys/presence/*").reply["error"] == DENIED
    assert reader.subscribe("/sys/login").reply["error"].startswith("403:")


def test_a_client_that_loses_the_presence_right_loses_its_subscription() -> None:
    here = server()
    reader = user(here, Operation.PRESENCE)
    reader.subscribe(EVENTS)
    reader.connect()
    reader.session.identity.grants = Granted()
    here.for_extensions.reauthorize(reader.session)
    here.turn()
    on(here, ROOM)
    assert heard(reader) == []
    assert reader.session.subscriptions == set()


class Closed(SecurityPolicy):
    """Denies subscribing to a room."""

    def can_subscribe(self, session: Session, channel: str, message: Json) -> Denial | None:
        return Denial() if channel.startswith("/room/") else None


def test_a_policy_that_denies_subscribing_denies_presence() -> None:
    here = server()
    here.bayeux.state.rights.policy = Closed()
    denied = "403:denied_by_security_policy:presence_denied"
    assert ask(here.client(), {"channel": ROOM}) == denied
    assert here.client().subscribe(EVENTS).reply["error"] == denied


def test_an_authorizer_that_does_not_know_presence_grants_none() -> None:
    here = server()
    grant = {Operation.SUBSCRIBE: Vote.GRANT, Operation.CREATE: Vote.GRANT}
    here.bayeux.state.rights.add(
        "/room/**", lambda operation, *_: grant.get(operation, Vote.IGNORE)
    )
    assert ask(here.client(), {"channel": ROOM}) == "403:denied_by_not_granting:presence_denied"


def test_an_operator_may_ask_for_members_though_the_policy_denies_presence() -> None:
    here = server()
    here.bayeux.state.rights.policy = Closed()
    operator = here.client()
    operator.session.identity.role = "operator"
    assert ask(operator, {"channel": ROOM})["count"] == 0


def test_a_restart_is_neither_a_leave_nor_a_join() -> None:
    before = RestartableServer(channels=RULES)
    watching, joe = kept(before, name="ann/1"), kept(before, name="joe/1")
    watching.subscribe(EVENTS)
    joe.subscribe(ROOM)
    take_all(watching)
    after = before.reborn()
    watching, joe = again(watching, after), again(joe, after)
    assert sessions(ask(after.client(), {"channel": ROOM})["members"]) == ["client/joe/1"]
    assert take_all(watching) == []
    joe.unsubscribe(ROOM)
    (event,) = take_all(watching)
    assert sessions(event["left"]) == ["client/joe/1"]


def take_all(client: Client) -> list[Any]:
    """What waits for the client, which acks all of it."""
    client.server.turn()
    data, _ = drain(client, client.session.queue.batch)
    return data
